import { once } from 'node:events'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { postgresServers } from '../../env/values.ts'
import { codeError, codeOf, PlatformError, POOL_BUSY } from '../../errors.ts'
import { type Log, within } from '../../host.ts'
import type { Secret } from '../../secret.ts'
import { UNAVAILABLE } from '../errors.ts'
import * as faults from './faults.ts'

export type Pool = ReturnType<typeof createPool>
type Connection = ReturnType<typeof connectionOf>
/** Runs queries: the pool, or the one connection of a transaction. */
export type Queryable = Pick<Pool, 'query'>
type Row = pg.QueryResultRow

/** A statement of a request. The server ends it; when it is silent, this side gives up a little later. */
export const STATEMENT_MS = 15_000
const SILENCE_MS = 2000
/** How long a server may take to close its side of a connection that we ended. */
const GOODBYE_MS = 500
const IDLE_IN_TRANSACTION_MS = 30_000
/** For migrations and operators' commands, which may take as long as they need. */
export const UNLIMITED = 0
/** TCP keepalive starts after this, so the kernel notices a dead peer even on an idle connection. */
const KEEPALIVE_AFTER_MS = 10_000
const INT8 = 20
/** Attempts at what fails for a conflict or because the server only reads; the last failure is thrown. */
const ATTEMPTS = 3
/** 23503: a row was inserted for one that another transaction deleted meanwhile, such as a mail for an erased subscriber. */
const CONFLICTS = ['40001', '40P01', '23503', faults.READ_ONLY]

/** The server's clock in UTC milliseconds: leases are measured by it, because the clocks of its clients differ. */
export const NOW_MS = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** Connections to the one server of the address that can be written; one that missed a limit or lost its server is not used again. */
export function createPool(input: {
  url: Secret
  size: number
  log?: Log | undefined
  /** As the log names what it connects to. */
  named?: string
  onFault?: (error: unknown) => void
  limitMs?: number
  connectMs?: number
}) {
  const { limitMs = STATEMENT_MS, connectMs = faults.CONNECT_MS, named = 'the store' } = input
  const servers = postgresServers(input.url.reveal()) ?? [input.url.reveal()]
  const mustAsk = servers.length > 1 || /[?&]target_session_attrs=(?!any)/.test(servers[0] ?? '')
  const writable = new WeakSet<pg.PoolClient>()
  const retiring = new Set<Promise<void>>()
  let server = 0
  let parameters = true
  let ended: Promise<unknown> | undefined
  let current = open()

  function open() {
    const sockets = new Set<Socket>()
    const pool = new pg.Pool({
      connectionString: servers[server],
      max: input.size,
      connectionTimeoutMillis: connectMs,
      // Ends a statement on the server, too. PgBouncer refuses this parameter and has a limit of its own.
      ...(parameters && limitMs !== UNLIMITED && { statement_timeout: limitMs }),
      application_name: 'platformctl',
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_AFTER_MS,
      stream: () => {
        const socket = new Socket()
        sockets.add(socket)
        return socket.once('close', () => sockets.delete(socket))
      },
      // Times are whole milliseconds and counts stay below 2^53: numbers, not strings.
      types: {
        getTypeParser: (oid: number, format?: 'text' | 'binary') =>
          oid === INT8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
      },
    })
    // Without a listener, an idle connection that the server closes would crash the process.
    pool.on('error', (error) =>
      input.log?.warn('store_connection_lost', `an idle connection to ${named} was lost`, {
        code: codeOf(error),
      }),
    )
    return { pool, sockets }
  }

  /** Replaces a pool whose connections can no longer be trusted. Statements in flight finish on it. */
  function leave(left: typeof current, next = server): void {
    if (left !== current || ended !== undefined) return
    server = next
    current = open()
    const retired = retire(left).finally(() => retiring.delete(retired))
    retiring.add(retired)
  }

  /** Connects to a server that can be used. Tries each one once, starting with the last that worked. */
  async function connect(): Promise<Connection> {
    for (let tried = 1; ; tried += 1) {
      const from = current
      try {
        const client = await from.pool.connect()
        const connection = connectionOf(client, () => leave(from), input.onFault)
        if (mustAsk && !writable.has(client)) await assertWritable(connection)
        writable.add(client)
        return connection
      } catch (error) {
        if (ended !== undefined || tried > servers.length) throw error
        // Another caller has already replaced this pool: try the new one.
        if (from !== current) continue
        if (faults.isPoolExhausted(error)) throw Object.assign(error, { code: POOL_BUSY })
        if (parameters && faults.refusedParameter(error) === 'statement_timeout') {
          parameters = false
          leave(from)
          continue
        }
        if (!faults.isServerAtFault(error) || servers.length === 1) throw error
        leave(from, (server + 1) % servers.length)
        if (tried === servers.length) throw error
      }
    }
  }

  /** Lends a connection to some work, which is done again if it fails with one of these codes. */
  async function using<T>(again: readonly string[], work: (connection: Connection) => Promise<T>) {
    for (let attempt = 1; ; attempt += 1) {
      const connection = await connect()
      try {
        return await work(connection)
      } catch (error) {
        if (attempt >= ATTEMPTS || !again.includes(codeOf(error))) throw error
      } finally {
        connection.release()
      }
    }
  }
  const queryWithin = <R extends Row>(most: number, text: string, values?: readonly unknown[]) =>
    using([faults.READ_ONLY], (connection) => connection.query<R>(most, text, values))

  return {
    limitMs,
    query: <R extends Row>(text: string, values?: readonly unknown[]) =>
      queryWithin<R>(silenceAfter(limitMs), text, values),
    queryWithin,
    using,
    async end() {
      ended ??= Promise.all([...retiring, retire(current)])
      await ended
    },
  }
}

export const orEnd = <T>(pool: Pool, ready: Promise<T>): Promise<T> =>
  ready.catch(async (error: unknown) => {
    await pool.end()
    throw error
  })

/** Lends an operator's work one connection, whose statements take the time they take. */
export async function withPool<T>(url: Secret, work: (pool: Pool) => Promise<T>, limitMs = UNLIMITED) {
  const pool = createPool({ url, size: 1, limitMs })
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}

/** Ends a pool. If the server does not close its side in time, closes this side alone. */
async function retire({ pool, sockets }: { pool: pg.Pool; sockets: Set<Socket> }): Promise<void> {
  await pool.end()
  // A connection that the peer resets counts as closed, too.
  const closed = Promise.allSettled([...sockets].map((socket) => once(socket, 'close')))
  await Promise.race([closed, sleep(GOODBYE_MS, undefined, { ref: false })])
  for (const socket of sockets) socket.destroy()
}

function connectionOf(client: pg.PoolClient, onLost: () => void, onFailed?: (error: unknown) => void) {
  let broken = false
  // The pool listens to idle connections only: one that the server closes between two statements would crash the process.
  const onFault = () => {
    broken = true
  }
  client.on('error', onFault)
  return {
    async query<R extends Row>(limitMs: number, text: string, values: readonly unknown[] = []) {
      try {
        const answer = client.query<R>(text, [...values])
        return await (limitMs === UNLIMITED ? answer : within(limitMs, answer, silentServer))
      } catch (error) {
        onFailed?.(error)
        if (!faults.isAnswer(error)) broken = true
        // Where one connection is silent or was demoted, the idle ones beside it are, too.
        if (error instanceof faults.SilentServerError || codeOf(error) === faults.READ_ONLY) {
          broken = true
          onLost()
        }
        throw error
      }
    },
    release() {
      client.off('error', onFault)
      client.release(broken)
    },
    get broken() {
      return broken
    },
  }
}

async function assertWritable(connection: Connection): Promise<void> {
  try {
    const { rows } = await connection.query(faults.CONNECT_MS, 'SHOW transaction_read_only')
    if (rows[0]?.transaction_read_only !== 'off') throw codeError(faults.READ_ONLY)
  } catch (error) {
    connection.release()
    throw error
  }
}

/** One transaction on one connection: committed whole, or not at all. Begun again if another one got in its way. */
export function transaction<T>(pool: Pool, work: (on: Queryable) => Promise<T>, limitMs = pool.limitMs) {
  return pool.using(CONFLICTS, async (connection) => {
    const on: Queryable = { query: (text, values) => connection.query(silenceAfter(limitMs), text, values) }
    try {
      await on.query(
        `BEGIN; SET LOCAL statement_timeout = ${limitMs}; SET LOCAL idle_in_transaction_session_timeout = ${limitMs === UNLIMITED ? UNLIMITED : IDLE_IN_TRANSACTION_MS}`,
      )
      const result = await work(on)
      await on.query('COMMIT')
      return result
    } catch (error) {
      // A connection that could not roll back is not given to anyone else.
      if (!connection.broken) await on.query('ROLLBACK').catch(() => {})
      throw error
    }
  })
}

/** A little longer than the server's limit: if the server reports the timeout first, the connection can be kept. */
const silenceAfter = (limitMs: number) => (limitMs === UNLIMITED ? UNLIMITED : limitMs + SILENCE_MS)

export function silentServer(): never {
  throw new faults.SilentServerError('the server did not answer in time')
}

/** A server that is down, full or too slow becomes `store_unavailable` (503); our own errors stay what they are. */
export async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof PlatformError) throw error
    // Its code says so; the package's error for a connection has none.
    const cause = faults.isSilent(error)
      ? new faults.SilentServerError('no answer in time', { cause: error })
      : error
    throw new PlatformError('store_unavailable', UNAVAILABLE, { cause })
  }
}
