import type { Finding } from '../finding.ts'
import type { GroupState } from './environment.ts'

/** Warns when nobody would hear of an incident: in production without any channel, or only by the mail that fails. */
export function alertFindings(input: {
  readonly groups: readonly { readonly name: string; readonly state: GroupState }[]
  readonly services: readonly string[]
  readonly isSet: (name: string) => boolean
  readonly production: boolean
}): Finding[] {
  const { groups, services, isSet, production } = input
  const stateOf = (group: string) => groups.find(({ name }) => name === group)?.state
  // The platform, or the services asked about, have no alerts.
  if (stateOf('alerts') === undefined) return []
  const [webhook, mail] = [isSet('ALERT_WEBHOOK_URL'), isSet('ALERT_EMAIL_TO')]
  const warning = (parts: Pick<Finding, 'id' | 'present' | 'missing' | 'cause' | 'fix'>): Finding => ({
    severity: 'warning',
    group: 'alerts',
    services,
    ...parts,
  })
  if (!webhook && !mail)
    return production
      ? [
          warning({
            id: 'no-alert-channel',
            present: [],
            missing: ['ALERT_WEBHOOK_URL', 'ALERT_EMAIL_TO'],
            cause: 'This is production, and no alert is sent when something fails.',
            fix: 'Set ALERT_WEBHOOK_URL, ALERT_EMAIL_TO or both, then run: platformctl alert test.',
          }),
        ]
      : []
  if (webhook || !mail) return []
  if (stateOf('mail') !== undefined && stateOf('mail') !== 'configured')
    return [
      warning({
        id: 'alert-mail-off',
        present: ['ALERT_EMAIL_TO'],
        missing: ['ALERT_WEBHOOK_URL'],
        cause: 'Alerts go out by mail alone, and mail is not configured, so none is sent.',
        fix: 'Configure mail, or set ALERT_WEBHOOK_URL.',
      }),
    ]
  if (isSet('ALERT_ESCALATION_URL')) return []
  return [
    warning({
      id: 'alerts-by-mail-only',
      present: ['ALERT_EMAIL_TO'],
      missing: ['ALERT_WEBHOOK_URL'],
      cause: 'Alerts go out by mail alone, so a fault of mail itself sends none.',
      fix: 'Set ALERT_WEBHOOK_URL as well.',
    }),
  ]
}
