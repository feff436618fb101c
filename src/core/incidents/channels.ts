import type { Mailbox } from '../address.ts'
import type { Clock } from '../clock.ts'
import type { Mailer } from '../mail/mailer.ts'
import { escapeHtml } from '../mail/render.ts'
import type { CompiledMail } from '../mail/template.ts'
import type { Secret } from '../secret.ts'
import { REMINDER_MS } from './due.ts'
import type { MessageKind, StoredIncident } from './incident.ts'
import type { AlertOutcome, Channel } from './teller.ts'
import type { AlertText } from './text.ts'
import { webhookFormat, webhookRequest } from './webhook.ts'

type TextOf = (incident: StoredIncident, kind: MessageKind) => AlertText

const ANSWER_MS = 20_000

/**
 * A channel that posts alerts to a webhook, in the form that its service documents. Redirects are not
 * followed.
 */
export function webhookChannel({
  name = 'webhook',
  afterMs,
  url,
  secret,
  format,
  textOf,
  clock,
  send = fetch,
}: {
  readonly name?: string
  readonly afterMs?: number
  readonly url: Secret
  readonly secret: Secret | undefined
  /** As ALERT_WEBHOOK_FORMAT says; by the address when left out. */
  readonly format?: string | undefined
  readonly textOf: TextOf
  readonly clock: Pick<Clock, 'now'>
  readonly send?: typeof fetch
}): Channel {
  const to = webhookFormat(url.reveal(), format)
  return {
    name,
    ...(afterMs !== undefined && { afterMs }),
    async tell(message) {
      const outcome = await post(message)
      // PagerDuty would keep a test open.
      if (to === 'pagerduty' && message.kind === 'test' && outcome.kind === 'sent')
        return post({ ...message, kind: 'closed' })
      return outcome
    },
  }

  async function post({ id, kind, incident }: Parameters<Channel['tell']>[0]): Promise<AlertOutcome> {
    const text = textOf(incident, kind)
    const { headers, body } = webhookRequest(to, {
      address: new URL(url.reveal()),
      message: { id, kind, incident, text },
      secret,
      now: clock.now(),
    })
    try {
      const answer = await send(url.reveal(), {
        method: 'POST',
        headers,
        body,
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_MS),
      })
      await answer.body?.cancel()
      if (answer.ok) return { kind: 'sent' }
      const reason = `the webhook answered ${answer.status}`
      // Standard Webhooks: 410 says that the endpoint is gone for good; everything else may change.
      return { kind: answer.status === 410 ? 'permanent' : 'transient', reason }
    } catch {
      // The fault's own text could quote the address, which is a secret with most services.
      return { kind: 'transient', reason: 'the webhook did not answer' }
    }
  }
}

/** A channel that sends alerts by mail, through the platform's own mailer. */
export function mailChannel({
  open,
  to,
  textOf,
}: {
  /** Opens a mailer that sends this mail. */
  readonly open: (mail: CompiledMail) => Pick<Mailer, 'send' | 'close'>
  readonly to: Mailbox
  readonly textOf: TextOf
}): Channel {
  return {
    name: 'mail',
    async tell({ id, kind, incident }): Promise<AlertOutcome> {
      const mailer = open(alertMail(textOf(incident, kind)))
      try {
        const outcome = await mailer.send({
          template: ALERT,
          slots: {},
          to,
          about: id,
          // The same date and text for every attempt, because a provider refuses a different message under a
          // key that it knows.
          date: new Date(dateOf(kind, incident)),
        })
        if (outcome.kind === 'sent') return { kind: 'sent' }
        const isFinal = outcome.kind === 'permanent' || outcome.kind === 'not_composed'
        return { kind: isFinal ? 'permanent' : 'transient', reason: outcome.reason }
      } finally {
        await mailer.close()
      }
    },
  }
}

/**
 * The time that a message is about: when the incident opened, was acknowledged or closed, or when the
 * reminder fell due.
 */
function dateOf(kind: MessageKind, { openedAt, closedAt, acknowledgedAt }: StoredIncident): number {
  if (kind === 'closed') return closedAt ?? openedAt
  if (kind === 'acknowledged') return acknowledgedAt ?? openedAt
  const [, reminder = '0'] = /^reminder-(\d+)$/.exec(kind) ?? []
  return openedAt + Number(reminder) * REMINDER_MS
}

/** The name under which the mailer finds the mail. */
export const ALERT = 'alert'

function alertMail({ title, lines }: AlertText): CompiledMail {
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>${escapeHtml(title)}</title></head><body><h1>${escapeHtml(title)}</h1>${lines.map((line) => `<p>${escapeHtml(line)}</p>`).join('')}</body></html>`
  return {
    slots: {},
    subject: [title],
    html: [html],
    text: [`${[title, '', ...lines].join('\n')}\n`],
    body: [],
  }
}
