import { createRequire } from 'node:module'
import type { GroupState } from './environment.ts'

export const ERRORTRACK_SDK = '@sentry/node'

/** Whether this package could be imported here. Loads none of it. */
export function isInstalled(name: string): boolean {
  try {
    return createRequire(import.meta.url).resolve(name) !== ''
  } catch {
    return false
  }
}

/** Where an environment is validated, as far as warnings ask. */
export interface Surroundings {
  /** It is what a service runs with, and DEPLOY_ENVIRONMENT says production. */
  readonly production: boolean
  /** Whether a package could be imported here. */
  readonly isInstalled: (name: string) => boolean
}

interface Seen extends Partial<Surroundings> {
  /** Set, and well-formed. */
  readonly isSet: (name: string) => boolean
  /** Undefined: the platform has no such group, or the services asked about read none of it. */
  readonly stateOf: (group: string) => GroupState | undefined
}

/** A warning about what a group as a whole does, or leaves open. */
export interface GroupWarning {
  readonly id: string
  readonly group: string
  readonly applies: (seen: Seen) => boolean
  /** The variables concerned, as far as they are set. */
  readonly of: readonly string[]
  /** Those that are missing, as far as they are not. */
  readonly needs: readonly string[]
  readonly cause: string | ((missing: readonly string[]) => string)
  readonly fix: string | ((missing: readonly string[]) => string)
}

const CLAIMS: Readonly<Record<string, string>> = {
  DATASTORE_JWT_AUDIENCE: 'audience',
  DATASTORE_JWT_ISSUER: 'issuer',
}
const [WEBHOOK, MAIL] = ['ALERT_WEBHOOK_URL', 'ALERT_EMAIL_TO']

/** Whether alerts go out by mail alone, and mail is on; undefined if they do not. */
function mailAlone({ stateOf, isSet, production }: Seen): { readonly isOn: boolean } | undefined {
  if (production === undefined || stateOf('alerts') === undefined) return undefined
  if (isSet(WEBHOOK) || !isSet(MAIL)) return undefined
  return { isOn: (stateOf('mail') ?? 'configured') === 'configured' }
}

export const GROUP_WARNINGS: readonly GroupWarning[] = [
  {
    id: 'token-claims-unchecked',
    group: 'identity',
    applies: ({ stateOf, isSet }) =>
      stateOf('identity') !== undefined &&
      (isSet('DATASTORE_JWT_SECRET') || isSet('DATASTORE_JWKS_URL')) &&
      !Object.keys(CLAIMS).every(isSet),
    of: ['DATASTORE_JWT_SECRET', 'DATASTORE_JWKS_URL'],
    needs: Object.keys(CLAIMS),
    cause: (missing) =>
      `Tokens are accepted whatever ${missing.map((name) => CLAIMS[name]).join(' and ')} they name.`,
    fix: (missing) => `Set ${missing.join(' and ')} as your data store writes them.`,
  },
  {
    id: 'no-alert-channel',
    group: 'alerts',
    applies: ({ stateOf, isSet, production }) =>
      production === true && stateOf('alerts') !== undefined && !isSet(WEBHOOK) && !isSet(MAIL),
    of: [],
    needs: [WEBHOOK, MAIL],
    cause: 'This is production, and no alert is sent when something fails.',
    fix: 'Set ALERT_WEBHOOK_URL, ALERT_EMAIL_TO or both, then run: platformctl alert test.',
  },
  {
    id: 'alert-mail-off',
    group: 'alerts',
    applies: (seen) => mailAlone(seen)?.isOn === false,
    of: [MAIL],
    needs: [WEBHOOK],
    cause: 'Alerts go out by mail alone, and mail is not configured, so none is sent.',
    fix: 'Configure mail, or set ALERT_WEBHOOK_URL.',
  },
  {
    id: 'alerts-by-mail-only',
    group: 'alerts',
    applies: (seen) => mailAlone(seen)?.isOn === true && !seen.isSet('ALERT_ESCALATION_URL'),
    of: [MAIL],
    needs: [WEBHOOK],
    cause: 'Alerts go out by mail alone, so a fault of mail itself sends none.',
    fix: 'Set ALERT_WEBHOOK_URL as well.',
  },
  {
    id: 'package-missing',
    group: 'errortrack',
    applies: ({ stateOf, isInstalled }) =>
      stateOf('errortrack') === 'configured' && isInstalled?.(ERRORTRACK_SDK) === false,
    of: ['NEXT_PUBLIC_ERRORTRACK_DSN'],
    needs: [],
    cause: `NEXT_PUBLIC_ERRORTRACK_DSN is set, but the package ${ERRORTRACK_SDK} is not installed here: the services report no errors.`,
    fix: `Install it beside platformctl (npm install ${ERRORTRACK_SDK}), or remove the DSN.`,
  },
]
