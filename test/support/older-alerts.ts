import Database from 'better-sqlite3'
import pg from 'pg'
import type { openStore } from '../../src/core/store/open.ts'

const LEASE_MS = 90_000
const HOUR_MS = 3_600_000
/** PostgreSQL's own clock. */
const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

interface Row extends Readonly<Record<string, unknown>> {
  readonly id: string
  readonly opened_at: number
  readonly closed_at: number | null
}
type Key = { readonly incident: string; readonly kind: string; readonly channel: string }

/**
 * How a build without a queue of alerts sends them, with its own statements: it works out what is due from the
 * incidents and from what was said of them. 0.2.0 holds what it has in hand by the wall clock; on SQLite, later ones by
 * the time since the machine started.
 */
export function olderAlerts(
  address: NonNullable<Parameters<typeof openStore>[0]>,
  version: '0.2.0' | 'later',
  tell: (key: Key) => Promise<'sent' | 'pending'>,
) {
  const isFile = address.kind === 'sqlite'
  const file = isFile ? new Database(address.file) : undefined
  const pool = isFile
    ? undefined
    : new pg.Pool({
        connectionString: address.url.reveal(),
        max: 1,
        types: { getTypeParser: (id: number) => (id === 20 ? Number : pg.types.getTypeParser(id)) },
      } as pg.PoolConfig)
  /** `$name` in a text is a value. */
  async function ask(text: string, values: Readonly<Record<string, unknown>>): Promise<readonly Row[]> {
    const names = [...new Set([...text.matchAll(/\$(\w+)/g)].map(([, name = '']) => name))]
    if (file) {
      const bound = Object.fromEntries(names.map((name) => [name, values[name]]))
      const statement = file.prepare(text.replaceAll('platformctl.', ''))
      if (statement.reader) return statement.all(bound) as Row[]
      statement.run(bound)
      return []
    }
    const numbered = text.replace(/\$(\w+)/g, (_, name: string) => `$${names.indexOf(name) + 1}`)
    const answer = await pool?.query<Row>(
      numbered,
      names.map((name) => values[name]),
    )
    return answer?.rows ?? []
  }
  const sinceBoot = () => Number(process.hrtime.bigint() / 1_000_000n)
  const key = 'incident = $incident AND kind = $kind AND channel = $channel'
  const leaseNow = isFile ? (version === '0.2.0' ? '$now' : '$boot') : NOW_MS
  return {
    async open(id: string, now: number): Promise<void> {
      await ask(
        `INSERT INTO platformctl.incident (id, cause, service, affected, opened_at, seen_at) VALUES ($id, $id, 'web', '[]', $now, $now)`,
        { id, now },
      )
    },
    async close(id: string, now: number): Promise<void> {
      await ask('UPDATE platformctl.incident SET closed_at = $now WHERE id = $id', { id, now })
    },
    /** One round on a channel. */
    async round(channel: string, now: number): Promise<void> {
      const incidents = await ask(
        'SELECT id, opened_at, closed_at FROM platformctl.incident ORDER BY opened_at',
        {},
      )
      for (const { id: incident, opened_at, closed_at } of incidents) {
        const said = await ask(
          'SELECT kind, outcome FROM platformctl.alert_message WHERE incident = $incident AND channel = $channel',
          { incident, channel },
        )
        const wasTold = (kind: string) => said.some((one) => one.kind === kind)
        const reminder = Math.floor((now - opened_at) / (4 * HOUR_MS))
        const kinds =
          closed_at !== null
            ? wasTold('opened')
              ? ['closed']
              : []
            : ['opened', ...(reminder > 0 && wasTold('opened') ? [`reminder-${reminder}`] : [])]
        const isLeft = (kind: string) =>
          (said.find((one) => one.kind === kind)?.outcome ?? 'pending') === 'pending'
        for (const kind of kinds.filter(isLeft)) {
          const about = { incident, kind, channel }
          const [claimed] = await ask(
            `INSERT INTO platformctl.alert_message AS m (incident, kind, channel, outcome, attempts, at, next_at, claimed_until)
             VALUES ($incident, $kind, $channel, 'pending', 1, $now, 0, ${leaseNow} + ${LEASE_MS})
             ON CONFLICT (incident, kind, channel) DO UPDATE
             SET attempts = m.attempts + 1, at = excluded.at, claimed_until = excluded.claimed_until
             WHERE m.outcome = 'pending' AND m.next_at <= $now
               AND (m.claimed_until <= ${leaseNow} OR m.claimed_until > ${leaseNow} + ${version === '0.2.0' ? 1 : 2} * ${LEASE_MS})
             RETURNING attempts`,
            { ...about, now, boot: sinceBoot() },
          )
          if (claimed === undefined) continue
          const outcome = await tell(about)
          await ask(
            `UPDATE platformctl.alert_message SET outcome = $outcome, at = $now, next_at = $next, claimed_until = 0 WHERE ${key} AND outcome = 'pending'`,
            { ...about, outcome, now, next: now + (outcome === 'sent' ? 0 : 15_000) },
          )
        }
      }
    },
    async end(): Promise<void> {
      file?.close()
      await pool?.end()
    },
  }
}
