import type { Mailbox } from '../address.ts'
import { createEngine } from '../delivery/engine.ts'
import { messageJob, messageSettlement } from '../delivery/messages.ts'
import { ALERT, isAnswer } from '../delivery/retries.ts'
import type { Source } from '../delivery/source.ts'
import type { Settings } from '../env/settings.ts'
import type { Clock, Host } from '../host.ts'
import { attempt } from '../is-record.ts'
import type { Held } from '../mail/holds.ts'
import { LINES, type Mailer, PATIENCE_MS, type SendOutcome } from '../mail/mailer.ts'
import { openMailer } from '../mail/open.ts'
import { type CompiledMail, escapeHtml } from '../mail/template.ts'
import { proxiedFetch } from '../network/proxy.ts'
import type { Secret } from '../secret.ts'
import { ABOUT_PAUSES } from './conditions.ts'
import type { Alert, AlertClaim, Hearing, IncidentStore, MessageKind, StoredIncident } from './incident.ts'
import type { AlertText } from './text.ts'
import { webhookFormat, webhookRequest } from './webhook.ts'

export interface Channel extends Hearing, Pick<Source<AlertClaim>, 'lines' | 'patienceMs'> {
  /** Never rejects. */
  tell(alert: Alert, signal?: AbortSignal): Promise<SendOutcome>
}

export const alertId = (incident: string, kind: MessageKind) => `alert.${incident}.${kind}`

/** Sends the alerts that a store has queued, each channel in a lane of its own, so that one that hangs holds up no other. */
export function createAlertLanes(
  host: Host,
  store: IncidentStore,
  channels: readonly Channel[],
  held: Held = async () => undefined,
  signal?: AbortSignal,
): readonly (() => Promise<number>)[] {
  const { clock, log } = host
  return channels.map((channel) => {
    const { name, lines, patienceMs } = channel
    async function isQuiet(): Promise<boolean> {
      if ((await store.silenceAt(clock.now())) !== undefined) return true
      // A hold that cannot be read keeps back no alert: its store may be what the alert is about.
      return (await held('alert').catch(() => undefined)) !== undefined
    }
    const source: Source<AlertClaim> = {
      stream: ALERT,
      lines,
      patienceMs,
      jobOf: (claim) => ({ ...messageJob(claim), untilTaken: claim.kind === 'closed' }),
      claim: async (asked) => store.claimAlerts({ ...asked, channel: name, quiet: await isQuiet() }),
      keep: (messages, leaseMs) => store.keepAlerts({ messages, now: clock.now(), leaseMs }),
      async prepare({ incident: id, kind, createdAt: at, said }) {
        const found = await store.find(id)
        if (found === undefined || isPast(kind, found)) return { kind: 'over' }
        const incident = { ...found, ...said }
        // Again, because a silence may begin between the claim and the handover.
        if (!ABOUT_PAUSES.includes(incident.cause) && (await isQuiet())) return { kind: 'untried' }
        return { handOver: (over) => channel.tell({ id: alertId(id, kind), kind, incident, at }, over) }
      },
      settle: (attempted) =>
        store.settleAlerts(
          attempted.map((one) => ({ ...messageSettlement(one), isTried: isAnswer(one.delivery) })),
        ),
      tell({ claim: { incident, kind, channel: by, attempt }, record, delivery }) {
        const facts = { incident, kind, channel: by, attempt }
        const then = record.result === 'over' ? ' and was given up' : '; it is tried again'
        if (delivery.kind === 'sent') log.info('alert_sent', 'an alert was sent', facts)
        else if (isAnswer(delivery))
          log.warn('alert_not_sent', `an alert was not sent${then}`, { ...facts, reason: delivery.reason })
      },
    }
    return createEngine(host, source, signal).wake
  })
}

/** Changed since it was queued: something else is queued in its place. */
const isPast = (kind: MessageKind, { closedAt, acknowledgedAt }: StoredIncident) =>
  (closedAt !== undefined && kind !== 'closed') ||
  (acknowledgedAt !== undefined && kind.startsWith('reminder'))

type TextOf = (incident: StoredIncident, kind: MessageKind) => AlertText
const NO_TEXT = { kind: 'not_composed', reason: 'the text of the alert could not be made' } as const
const ANSWER_MS = 20_000
const POSTS_AT_ONCE = 5

/** The channels that the environment configures; nothing connects before the first alert. */
export function openChannels(
  clock: Pick<Clock, 'now'>,
  { alerts: { webhook, escalation, mailTo }, mail }: Pick<Settings, 'alerts' | 'mail'>,
  textOf: TextOf,
): readonly Channel[] {
  return [
    webhook && webhookChannel(clock, webhook, textOf),
    escalation && webhookChannel(clock, { name: 'escalation', ...escalation }, textOf),
    mailTo &&
      mail &&
      mailChannel(
        () => openMailer({ mail, compiled: async () => ({}) }),
        { to: mailTo, lines: LINES[mail.route.kind], patienceMs: PATIENCE_MS[mail.route.kind] },
        textOf,
      ),
  ].filter((channel) => channel !== undefined)
}

/** A channel that posts alerts to a webhook, as its service documents. Redirects are not followed. */
export function webhookChannel(
  clock: Pick<Clock, 'now'>,
  settings: {
    readonly name?: string
    readonly afterMs?: number
    readonly url: Secret
    readonly secret: Secret | undefined
    /** As ALERT_WEBHOOK_FORMAT says; by the address when left out. */
    readonly format?: string | undefined
    readonly send?: typeof fetch
  },
  textOf: TextOf,
): Channel {
  const { name = 'webhook', afterMs, url, secret, format, send = proxiedFetch } = settings
  const to = webhookFormat(url.reveal(), format)
  async function post({ id, kind, incident }: Omit<Alert, 'at'>): Promise<SendOutcome> {
    const text = attempt(() => textOf(incident, kind))
    if (text === undefined) return NO_TEXT
    const address = new URL(url.reveal())
    const posting = { id, kind, incident, text, address, secret, now: clock.now() }
    const { headers, body } = webhookRequest(to, posting)
    const signal = AbortSignal.timeout(ANSWER_MS)
    try {
      const answer = await send(url.reveal(), { method: 'POST', headers, body, redirect: 'manual', signal })
      await answer.body?.cancel()
      if (answer.ok) return { kind: 'sent', id }
      const reason = `the webhook answered ${answer.status}`
      // Standard Webhooks: 410 says that the endpoint is gone for good; everything else may change.
      return answer.status === 410
        ? { kind: 'permanent', reason, hardBounce: true }
        : { kind: 'transient', reason, scope: 'message' }
    } catch {
      // The fault's own text could quote the address, which is a secret with most services.
      return { kind: 'transient', reason: 'the webhook did not answer', scope: 'message' }
    }
  }
  return {
    name,
    afterMs,
    lines: POSTS_AT_ONCE,
    patienceMs: ANSWER_MS,
    async tell(alert) {
      const outcome = await post(alert)
      // PagerDuty would keep a test open.
      const isKept = to === 'pagerduty' && alert.kind === 'test' && outcome.kind === 'sent'
      return isKept ? post({ ...alert, kind: 'closed' }) : outcome
    },
  }
}

/** A channel that sends alerts by mail, each through a mailer of its own, so that no connection stays open. */
export function mailChannel(
  open: () => Pick<Mailer, 'send' | 'close'>,
  { to, lines, patienceMs }: Pick<Channel, 'lines' | 'patienceMs'> & { readonly to: Mailbox },
  textOf: TextOf,
): Channel {
  return {
    name: 'mail',
    lines,
    patienceMs,
    async tell({ id: about, kind, incident, at }, signal) {
      const text = attempt(() => textOf(incident, kind))
      if (text === undefined) return NO_TEXT
      const mailer = open()
      try {
        // The same name, date and text for every attempt: a provider refuses another message under a key that it knows.
        const compiled = alertMail(text)
        return await mailer.send(
          { template: 'alert', slots: {}, to, about, date: new Date(at), compiled },
          signal,
        )
      } finally {
        await mailer.close()
      }
    },
  }
}

function alertMail({ title, lines }: AlertText): CompiledMail {
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>${escapeHtml(title)}</title></head><body><h1>${escapeHtml(title)}</h1>${lines.map((line) => `<p>${escapeHtml(line)}</p>`).join('')}</body></html>`
  const text = `${[title, '', ...lines].join('\n')}\n`
  return { slots: {}, subject: [title], html: [html], text: [text], body: [] }
}
