import { createRequire } from 'node:module'
import type { Finding } from '../finding.ts'
import { attempt } from '../is-record.ts'
import { leadsToItself } from './exposure.ts'
import type { GroupState } from './settings.ts'

export const ERRORTRACK_SDK = '@sentry/node'

/** Whether this package could be imported here. Loads none of it. */
export const isInstalled = (name: string): boolean =>
  attempt(() => createRequire(import.meta.url).resolve(name)) !== undefined

/** Where an environment is validated, as far as warnings ask. */
export interface Surroundings {
  /** It is what a service runs with, and DEPLOY_ENVIRONMENT says production. */
  readonly production: boolean
  readonly isInstalled: (name: string) => boolean
}

const CLAIMS: Readonly<Record<string, string>> = {
  DATASTORE_JWT_AUDIENCE: 'audience',
  DATASTORE_JWT_ISSUER: 'issuer',
}

/** Warnings about what a group as a whole does, or leaves open. */
export function* groupWarnings(
  /** The variables that are set, and well-formed. */
  usable: ReadonlyMap<string, { readonly text: string }>,
  /** Undefined: the platform has no such group, or the services asked about read none of it. */
  stateOf: (group: string) => GroupState | undefined,
  /** Whether mail is configured, whichever services read it. */
  mailWorks: boolean,
  { production, isInstalled }: Partial<Surroundings> = {},
): Generator<Pick<Finding, 'id' | 'group' | 'cause' | 'fix'> & { readonly about: readonly string[] }> {
  const isSet = (name: string) => usable.has(name)
  const site = 'NEXT_PUBLIC_SITE_URL'
  const isLocal = leadsToItself(usable.get(site)?.text ?? 'http://localhost')
  const mails = stateOf('site') !== undefined && stateOf('mail') === 'configured'
  if (usable.get('DEPLOY_ENVIRONMENT')?.text === 'production' && mails && isLocal)
    yield {
      id: 'localhost-links',
      group: 'site',
      about: [site],
      cause: 'This is production, and links in mails lead to localhost, where readers cannot open them.',
      fix: `Set ${site} to the address that readers can open.`,
    }
  const verifiers = ['DATASTORE_JWT_SECRET', 'DATASTORE_JWKS_URL'].filter(isSet)
  const unchecked = Object.keys(CLAIMS).filter((name) => !isSet(name))
  if (stateOf('identity') !== undefined && verifiers.length > 0 && unchecked.length > 0)
    yield {
      id: 'token-claims-unchecked',
      group: 'identity',
      about: [...verifiers, ...unchecked],
      cause: `Tokens are accepted whatever ${unchecked.map((name) => CLAIMS[name]).join(' and ')} they name.`,
      fix: `Set ${unchecked.join(' and ')} as your data store writes them.`,
    }
  const webhook = 'ALERT_WEBHOOK_URL'
  const mail = 'ALERT_EMAIL_TO'
  const dsn = 'NEXT_PUBLIC_ERRORTRACK_DSN'
  const isByMail = isSet(mail)
  if (stateOf('alerts') !== undefined && !isSet(webhook)) {
    const common = { group: 'alerts', about: [webhook, mail] }
    if (isByMail && !mailWorks)
      yield {
        id: 'alert-mail-off',
        ...common,
        cause: 'ALERT_EMAIL_TO is set and mail is not configured, so no alert is sent by mail.',
        fix: 'Configure mail, or set ALERT_WEBHOOK_URL.',
      }
    else if (isByMail && production !== undefined && !isSet('ALERT_ESCALATION_URL'))
      yield {
        id: 'alerts-by-mail-only',
        ...common,
        cause: 'Alerts go out by mail alone, so a fault of mail itself sends none.',
        fix: 'Set ALERT_WEBHOOK_URL as well.',
      }
    else if (!isByMail && production)
      yield {
        id: 'no-alert-channel',
        ...common,
        cause: 'This is production, and no alert is sent when something fails.',
        fix: 'Set ALERT_WEBHOOK_URL, ALERT_EMAIL_TO or both, then run: platformctl alert test.',
      }
  }
  if (stateOf('errortrack') === 'configured' && isInstalled?.(ERRORTRACK_SDK) === false)
    yield {
      id: 'package-missing',
      group: 'errortrack',
      about: [dsn],
      cause: `${dsn} is set, but the package ${ERRORTRACK_SDK} is not installed here: the services report no errors.`,
      fix: `Install it beside platformctl (npm install ${ERRORTRACK_SDK}), or remove the DSN.`,
    }
}
