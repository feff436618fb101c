import type { MessageRecord, Silence, StoredIncident } from '../../core/incidents/incident.ts'
import type { Pause } from '../../core/mail/holds.ts'
import { beside } from './text.ts'

const minute = (ms: number) => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`

const CHANNELS: Readonly<Record<string, string>> = {
  webhook: 'by webhook',
  mail: 'by mail',
  escalation: 'by escalation if nobody acknowledges',
}

export interface AlertList {
  readonly incidents: readonly (StoredIncident & {
    readonly messages: readonly MessageRecord[]
    /** Messages that are due now, each with its channel. */
    readonly due: readonly { readonly kind: string; readonly channel: string }[]
    /** Messages that a silence or a pause holds back, each with its channel. */
    readonly held: readonly { readonly kind: string; readonly channel: string }[]
    /** When its escalation is due, unless somebody acknowledges it. */
    readonly escalatesAt?: number | undefined
  })[]
  readonly channels: readonly string[]
  readonly silence: Silence | undefined
  /** Of the alerts themselves. */
  readonly pause?: Pause
}

/** The incidents, each with the alerts that were sent, those that are due, and those that are held back. */
export function alertsText({ incidents, channels, silence, pause }: AlertList, columns: number): string {
  const channelText =
    channels.length === 0
      ? 'off; set ALERT_WEBHOOK_URL or ALERT_EMAIL_TO'
      : channels.map((name) => CHANNELS[name] ?? name).join(' and ')
  const lines = [beside('alerts    ', channelText, columns)]
  if (silence !== undefined)
    lines.push(
      beside('silence   ', `until ${minute(silence.until)}, by ${silence.by}: ${silence.reason}`, columns),
    )
  if (pause !== undefined)
    lines.push(beside('pause     ', `alerts are paused since ${minute(pause.at)}: ${pause.reason}`, columns))
  if (incidents.length === 0) lines.push('', 'no incidents')
  for (const incident of incidents) {
    const { id, cause, service, affected, reason, openedAt, closedAt, acknowledgedBy } = incident
    const { resolvedBy, resolvedReason } = incident
    const state =
      closedAt !== undefined
        ? `closed ${minute(closedAt)}${resolvedBy === undefined ? '' : ` by ${resolvedBy}: ${resolvedReason}`}`
        : acknowledgedBy !== undefined
          ? `open, acknowledged by ${acknowledgedBy}`
          : 'open'
    const row = (name: string, text: string) => beside(`  ${name.padEnd(8)}`, text, columns)
    lines.push(
      '',
      beside(`${id}  `, `${cause} (${[service, ...affected].join(', ')}), ${state}`, columns),
      row('since', minute(openedAt)),
      ...(reason === undefined ? [] : [row('cause', reason)]),
      ...incident.messages.map(({ kind, channel, outcome, at, attempts, reason: why }) =>
        row(
          outcome === 'pending' ? 'tried' : outcome,
          `${kind} by ${channel}, ${minute(at)}${attempts > 1 ? `, attempt ${attempts}` : ''}${why === undefined ? '' : `: ${why}`}`,
        ),
      ),
      ...incident.due.map(({ kind, channel }) => row('due', `${kind} by ${channel}`)),
      ...(incident.escalatesAt === undefined
        ? []
        : [row('later', `opened by escalation, ${minute(incident.escalatesAt)}, unless acknowledged`)]),
      ...incident.held.map(({ kind, channel }) =>
        row('held', `${kind} by ${channel}, by the ${silence ? 'silence' : 'pause'}`),
      ),
    )
  }
  return `${lines.join('\n')}\n`
}
