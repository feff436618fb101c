import path from 'node:path'
import Database from 'better-sqlite3'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { TEXTS as account } from '../../../src/core/store/account.ts'
import { TEXTS as confirmations } from '../../../src/core/store/confirmations.ts'
import { TEXTS as counts } from '../../../src/core/store/counts.ts'
import { TEXTS as departures } from '../../../src/core/store/departures.ts'
import { forPostgres, forSqlite } from '../../../src/core/store/dialect.ts'
import { TEXTS as dispatch } from '../../../src/core/store/dispatch.ts'
import { TEXTS as enrolments } from '../../../src/core/store/enrolments.ts'
import { TEXTS as erasure } from '../../../src/core/store/erasure.ts'
import { TEXTS as feedback } from '../../../src/core/store/feedback.ts'
import { TEXTS as health } from '../../../src/core/store/health.ts'
import { TEXTS as incidents } from '../../../src/core/store/incidents.ts'
import { TEXTS as jobs } from '../../../src/core/store/jobs.ts'
import { TEXTS as mailboxes } from '../../../src/core/store/mailboxes.ts'
import { TEXTS as maintenance } from '../../../src/core/store/maintenance.ts'
import { TEXTS as messages } from '../../../src/core/store/messages.ts'
import { SQLITE_STEPS } from '../../../src/core/store/migrations.ts'
import { openHistory } from '../../../src/core/store/open.ts'
import { TEXTS as plans } from '../../../src/core/store/plans.ts'
import { TEXTS as replay } from '../../../src/core/store/replay.ts'
import { TEXTS as sending } from '../../../src/core/store/sending.ts'
import { TEXTS as meta } from '../../../src/core/store/sql.ts'
import { INCIDENTS } from '../../../src/core/store/sqlite/history.ts'
import { TEXTS as subscriptions } from '../../../src/core/store/subscriptions.ts'
import { emptyFolder } from '../../support/folder.ts'
import { newDatabase } from '../../support/stores.ts'

/** Every subject's texts: an export `TEXTS` that is missing here is reported as unused by `npm run check`. */
const SUBJECTS = {
  account,
  departures: departures(),
  confirmations,
  counts,
  dispatch,
  enrolments,
  erasure,
  feedback,
  health,
  incidents,
  jobs,
  mailboxes,
  maintenance,
  messages,
  meta,
  plans,
  replay,
  sending,
  subscriptions,
}

/** Every statement that a store runs, by subject and name. */
const EVERY = Object.entries(SUBJECTS).flatMap(([subject, texts]) =>
  Object.entries<string | Readonly<Record<string, string>>>(texts).flatMap(([name, text]) =>
    Object.entries(typeof text === 'string' ? { '': text } : text).map(
      ([of, one]) => [`${subject}.${name}${of}`, one] as const,
    ),
  ),
)

/** The file that an SQLite store's machine keeps its recorded health in. */
async function historyFile(): Promise<Database.Database> {
  const file = path.join(await emptyFolder(), 'history.sqlite')
  await (await openHistory(file)).close()
  return new Database(file)
}

test('SQLite prepares every statement of the store against its newest schema', async () => {
  const database = new Database(':memory:')
  const recorded = await historyFile()
  onTestFinished(() => void recorded.close())
  for (const step of SQLITE_STEPS) database.exec(step)
  const incidentsOfFile = Object.entries(INCIDENTS).map(([name, text]) => [`health.${name}`, text] as const)
  const faults = [...EVERY, ...incidentsOfFile].flatMap(([name, text]) => {
    try {
      ;(name.startsWith('health.') ? recorded : database).prepare(forSqlite(text).text)
      return []
    } catch (error) {
      return [`${name}: ${String(error)}`]
    }
  })
  database.close()
  expect(faults).toEqual([])
})

test('PostgreSQL plans every statement of the store against its newest schema', async () => {
  const { url } = await newDatabase('a store')
  const faults: string[] = []
  const client = new pg.Client(url)
  await client.connect()
  for (const [name, text] of EVERY)
    await client
      .query(`EXPLAIN (GENERIC_PLAN) ${forPostgres(text).text}`)
      .catch((error: unknown) => faults.push(`${name}: ${String(error)}`))
  await client.end()
  expect(faults).toEqual([])
})

/** What is asked for every minute, by every page of a list, or for every lesson. */
const INDEXED: Readonly<Record<string, RegExp>> = {
  'subscriptions.byId': /subscription_pkey|autoindex_subscription/,
  'subscriptions.byPerson': /subscription_person/,
  'dispatch.fresh': /subscription_due/,
  'dispatch.failed': /subscription_(?:due|retry)/,
  'dispatch.interrupted': /subscription_claimed/,
  'counts.backlog': /subscription_due[\s\S]*subscription_problem[\s\S]*subscription_claimed/,
  'counts.undecided': /subscription_problem/,
  'counts.problems': /subscription_problem/,
  'confirmations.recent': /subscription_mailbox/,
  'confirmations.asked': /confirmation_subscription/,
  'enrolments.pageOfCut': /subscription_cut/,
  // Earlier ones of the same subscription; PostgreSQL decides by numbers, which an empty table has not.
  'messages.due':
    /message_stream[\s\S]*next_attempt_at *[<>][\s\S]*message_(?:subscription|stream on message o)/,
  'incidents.due': /message_stream[\s\S]*next_attempt_at *[<>]/,
  'incidents.rewindqueue': /message_subject/,
  // By an index, each row is looked up, and the way to it goes through others that may hold large mails.
  'messages.expire': /^(?!.*message_stream)/,
  'mailboxes.suppressed': /mailbox_suppressed/,
  'feedback.prune': /feedback_event_received/,
}

test('each store finds what is asked for often by an index, and what is to be claimed without a sort', async () => {
  const database = new Database(':memory:')
  for (const step of SQLITE_STEPS) database.exec(step)
  const { query } = await newDatabase('a store')
  const every = new Map<string, string>(EVERY)
  const faults: string[] = []
  for (const [name, index] of Object.entries(INDEXED)) {
    const isMet = (plan: string) =>
      index.test(plan) && !(name.startsWith('dispatch.') && /Sort|TEMP B-TREE/.test(plan))
    const { text, names } = forSqlite(every.get(name) ?? '')
    const values = Object.fromEntries(names.map((parameter) => [parameter, null]))
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(values)
    if (!isMet(JSON.stringify(plan))) faults.push(`${name} on SQLite: ${JSON.stringify(plan)}`)
    // A table without rows is read whole, or sorted, if that is allowed.
    const rows = await query(
      `SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (GENERIC_PLAN) ${forPostgres(every.get(name) ?? '').text}`,
    )
    if (!isMet(JSON.stringify(rows))) faults.push(`${name} on PostgreSQL: ${JSON.stringify(rows)}`)
  }
  database.close()
  expect(faults).toEqual([])
})

test('a text is written once: PostgreSQL gets its schema and numbers, SQLite loses row locks', () => {
  const text =
    'SELECT * FROM subscription s JOIN mailbox m ON m.identity = s.identity WHERE s.id = @id AND m.cause IS DISTINCT FROM @cause AND s.state <> @id FOR UPDATE SKIP LOCKED'
  expect(forPostgres(text)).toEqual({
    text: 'SELECT * FROM platformctl.subscription s JOIN platformctl.mailbox m ON m.identity = s.identity WHERE s.id = $1 AND m.cause IS DISTINCT FROM $2 AND s.state <> $1 FOR UPDATE SKIP LOCKED',
    names: ['id', 'cause'],
  })
  expect(forSqlite(text).text).not.toContain('FOR UPDATE')
})

test('no value of a parameter makes SQLite prepare a statement again', () => {
  expect(forSqlite('SELECT * FROM notice WHERE seq > @seq LIMIT @limit')).toEqual({
    text: 'SELECT * FROM notice WHERE seq > +@seq LIMIT +@limit',
    names: ['seq', 'limit'],
  })
})
