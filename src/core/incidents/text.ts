import { nextStep, type Places } from '../daemon-record.ts'
import { duration } from '../messages/en.ts'
import { minute, shortened } from '../sentences.ts'
import { type MessageKind, SEEN_AT_STARTS, type StoredIncident } from './incident.ts'

export interface AlertText {
  readonly title: string
  readonly lines: readonly string[]
  /** The status page; undefined where its address is not set. */
  readonly link?: string | undefined
}

/** Advice for operators about a cause: its name, the effect of its failure, the command to start with, the runbook. */
export interface Advice {
  readonly label: string
  /** How a message describes the cause as it begins, lasts and has ended; the default is `is failing`. */
  readonly words?: { readonly is: string; readonly still: string; readonly ended: string }
  readonly means: string
  readonly command: string
  readonly runbook: string
  /** Nothing is served, and no store can record who looks at it. */
  readonly isDown?: boolean
}

/** Longer, and the limits of a service would cut off the commands below it. */
const LONGEST_FACT = 300

/** What the late end of an alert says, instead of that it works, when its cause fails again. */
export const FAILS_AGAIN = ': this alert ended, and another is open'

/** What others wrote, as part of one line: no line ends, nothing that turns the direction of what follows. */
const quoted = (text: string) =>
  shortened(text.replace(/[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]+/gu, ' '), LONGEST_FACT)

export function alertText(input: {
  readonly incident: StoredIncident
  readonly kind: MessageKind
  readonly advice: Advice
  /** What the daemon was started with, for the commands of the text. */
  readonly places?: Places | undefined
  readonly platform: string
  readonly isService: (name: string) => boolean
  readonly link?: string | undefined
}): AlertText {
  const { incident, kind, advice, platform, isService, places, link } = input
  const { service, affected, reason, openedAt, closedAt, acknowledgedBy, seenAt } = incident
  const { resolvedBy, resolvedReason } = incident
  const { label, words, means, command, runbook } = advice
  const pasted = (line: string) => (places === undefined ? line : nextStep(line, places))
  // A condition concerns the whole platform, not one service.
  const name = words ? label : `${label} (${[service, ...affected.filter(isService)].join(', ')})`
  const text = (what: string, ...lines: readonly string[]): AlertText => ({
    title: `${platform}: ${what}`,
    lines: link === undefined ? lines : [...lines, `Status page: ${link}`],
    link,
  })
  if (kind === 'test') return text('test alert', 'Nothing is wrong. Alerts of this platform arrive here.')
  // How long the daemon was down in between, a start that was refused does not know.
  const lasted = SEEN_AT_STARTS.includes(incident.cause)
    ? `The last start that was refused was at ${minute(seenAt)}.`
    : `It lasted ${duration((closedAt ?? seenAt) - openedAt)}, since ${minute(openedAt)}.`
  if (kind === 'closed' && resolvedBy !== undefined)
    return text(
      `${name}: resolved by ${quoted(resolvedBy)}`,
      ...(resolvedReason === undefined ? [] : [`Reason: ${quoted(resolvedReason)}.`]),
      lasted,
      'If it still fails, an alert follows within minutes.',
    )
  const ended = incident.failsAgain ? FAILS_AGAIN : ` ${resolvedReason ?? words?.ended ?? 'works again'}`
  if (kind === 'closed') return text(`${name}${ended}`, lasted)
  const since = `Since: ${minute(openedAt)}.`
  if (kind === 'acknowledged')
    return text(
      `${name} is being looked at by ${quoted(acknowledgedBy ?? 'somebody')}`,
      `${since} No reminders follow.`,
    )
  return text(
    `${name} ${kind === 'opened' ? (words?.is ?? 'is failing') : (words?.still ?? 'is still failing')}`,
    ...(reason === undefined ? [] : [`Cause: ${quoted(reason)}.`]),
    since,
    ...(affected.length === 0 ? [] : [`Also failing for this cause: ${quoted(affected.join(', '))}.`]),
    `What it means: ${means}.`,
    `Start with: ${pasted(command)}`,
    `Runbook: platformctl runbook ${runbook}`,
    // Without the store, which has one of another id, nothing can be recorded.
    ...(advice.isDown || incident.id.startsWith(`${incident.cause}-`)
      ? []
      : [`Acknowledge: ${pasted(`platformctl alert ack ${incident.id}`)}`]),
  )
}
