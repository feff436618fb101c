import { codeOf } from '../../errors.ts'
import { StoreMaintenanceError, StoreOpenError } from '../errors.ts'

/** As an operator names the server; an address has credentials. */
export const PLACE = 'The PostgreSQL of STORE_URL'
/** A server that does not answer in this time is down for the caller. */
export const CONNECT_MS = 5000
/** PostgreSQL's answer to a write on a server that only reads: a standby, or a primary that was demoted. */
export const READ_ONLY = '25006'
/** A lock was not had at once, or within `lock_timeout`. */
export const LOCK_NOT_AVAILABLE = '55P03'

/** The server did not answer a statement in time; what became of it is unknown. */
export class SilentServerError extends Error {
  override readonly name = 'SilentServerError'
  readonly code = 'ETIMEDOUT'
}

/** Whether the server said this itself and goes on listening: any other fault leaves the connection useless. */
export const isAnswer = (error: unknown): boolean =>
  error instanceof Error && 'severity' in error && !/^(08|57P)/.test(codeOf(error))

/** Whether another server may do better: this one refused neither the user nor the database, and had room. */
export const isServerAtFault = (error: unknown): boolean =>
  !/^(28|3D|42|53)/.test(codeOf(error)) && !isPoolExhausted(error)

const messageOf = (error: unknown) => (error instanceof Error ? error.message : '')

/** The setting of a new connection that a PgBouncer does not let through; undefined: it was something else. */
export const refusedParameter = (error: unknown): string | undefined =>
  /unsupported startup parameter(?: in options)?: (\w+)/.exec(messageOf(error))?.[1]

/** Every connection was in use until the time limit; the words are those of the package pg-pool. */
export const isPoolExhausted = (error: unknown): error is Error =>
  messageOf(error) === 'timeout exceeded when trying to connect'

/** Nothing was answered in time: a statement, or the connection itself. */
export const isSilent = (error: unknown): boolean =>
  codeOf(error) === 'ETIMEDOUT' ||
  (/^(Connection t|t)[a-z ]*timeout/i.test(messageOf(error)) && !isPoolExhausted(error))

/** Runs an operator's work, and says in one sentence what is wrong with the server, by the name of what named it. */
export async function explained<T>(work: () => Promise<T>, name = 'STORE_URL'): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreMaintenanceError) throw error
    const isSaid = error instanceof StoreOpenError
    const said = isSaid ? error : new StoreOpenError(sentence(error), { cause: error })
    said.message = said.message.replaceAll('STORE_URL', name)
    throw said
  }
}

const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection: check that it runs, and its host and port.',
  ECONNRESET: 'broke the connection: check its log, and any proxy on the way.',
  ENOTFOUND: 'has a host name that does not resolve.',
  EAI_AGAIN: 'has a host name that does not resolve.',
  '28P01': 'refused the user or the password.',
  '28000': 'refused the user or the password.',
  '3D000': 'has no such database: create it, or correct the name in STORE_URL.',
  '42501':
    'does not let this user make or use the schema "platformctl": grant CREATE on the database, or make the user its owner.',
  '53300': 'has no connection left: lower STORE_POOL_SIZE, or raise max_connections.',
  '57014': 'ended a statement that took too long: check its load, and what holds its locks.',
  '57P03': 'refused the connection: it is starting or stopping; try again.',
  [READ_ONLY]: 'can only be read: name the primary, or all servers, separated by commas.',
}

/** Why the server cannot be used, free of its address and credentials. */
function sentence(error: unknown): string {
  // The package pg gives a connection that is closed too early no code.
  const code = messageOf(error) === 'Connection terminated unexpectedly' ? 'ECONNRESET' : codeOf(error)
  if (Object.hasOwn(FAULTS, code)) return `${PLACE} ${FAULTS[code]}`
  const parameter = refusedParameter(error)
  if (parameter !== undefined)
    return `${PLACE} is behind a PgBouncer that refuses the start-up parameter "${parameter}": remove it from STORE_URL, or add it to ignore_startup_parameters of PgBouncer.`
  if (isPoolExhausted(error))
    return `${PLACE} has every connection of this process in use: raise STORE_POOL_SIZE, or check the server's load.`
  if (/SSL|certificate|self.signed/i.test(`${code} ${messageOf(error)}`))
    return `${PLACE} does not speak TLS as asked: check sslmode in STORE_URL and the server's certificate.`
  if (isSilent(error)) return `${PLACE} did not answer within ${CONNECT_MS / 1000} s: check network and load.`
  return `${PLACE} cannot be used (${code || 'no reason given'}).`
}
