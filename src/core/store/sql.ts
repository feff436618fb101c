import type { AuditEntry } from '../audit.ts'
import { MINUTE_MS } from '../durations.ts'
import { cannotOpen } from './errors.ts'
import { isTime, type JournalEntry } from './journal.ts'

/**
 * An operation of the store is written once, as a function that yields statements. SQLite runs it in one turn of the
 * event loop, so it is atomic without a lock; PostgreSQL awaits each statement. In a text, tables have their bare names,
 * parameters are named (`@now`), `FOR UPDATE` locks rows where there are row locks, and what the stores spell differently is a word in braces (`dialect.ts`). `@leaseNow` is
 * the time by the clock of leases in milliseconds, which the store gives itself.
 */
export type Steps<T> = Generator<Step, T, Answer>

export type Step = Statement | Script | Lock | Journaled
/** `values`: by the names of the text's parameters. `raw`: its rows come as the driver reads them, with null. */
type Statement = { readonly text: string; readonly values: object; readonly raw?: boolean }
/** Several statements at once, without parameters, in the store's own words. */
type Script = { readonly script: string }
/** Waits until no other transaction holds the name, or the space itself; SQLite has one writer, so it needs no lock. */
type Lock = { readonly space: number; readonly name: string | undefined }
/** Lines for the journal beside a file, or every line that names an identity taken out; a server's rows say the same. */
type Journaled = { readonly journal: readonly JournalEntry[]; readonly forget?: string }

export interface Answer {
  /** Named as the program names things (`first_attempt_at` is `firstAttemptAt`), with undefined for null. */
  readonly rows: readonly unknown[]
  /** Rows inserted, updated or deleted, or found; 0 if lines of the journal could not be taken out yet. */
  readonly changes: number
}

export const NOTHING: Answer = { rows: [], changes: 0 }

/** Rows that one step of a deletion or a search takes: each holds the writer for a few milliseconds at most. */
export const ROWS_A_STEP = 500

/** Runs steps on one store. Every function rejects with `store_unavailable` while the store cannot be used. */
export interface Sql {
  /** Runs a single statement, which is committed alone. */
  one<T>(statement: Steps<T>): Promise<T>
  /** Runs the steps one after the other, with no transaction around them. */
  read<T>(work: () => Steps<T>): Promise<T>
  /** Runs the steps in one transaction: all of them, or none. */
  write<T>(work: () => Steps<T>): Promise<T>
  /** Adds to the journal after a commit, where there is one. */
  journal(...entries: readonly JournalEntry[]): Promise<void>
  /** Takes erased texts out of the store's file; false: it may still hold a byte of them. */
  scrub(texts: readonly string[]): Promise<boolean>
}

/** Runs a statement; gives the number of rows that it changed. */
export function* run(text: string, values: object = {}): Steps<number> {
  return (yield { text, values }).changes
}

/** Every row of a query. `Row` is believed: a test prepares each text against both schemas. */
export function* all<Row>(text: string, values: object = {}, raw = false): Steps<readonly Row[]> {
  return (yield { text, values, raw }).rows as readonly Row[]
}

export function* first<Row>(text: string, values: object = {}): Steps<Row | undefined> {
  return (yield* all<Row>(text, values))[0]
}

/** The first value of a query's first row; undefined if it has none, or that is null. */
export function* scalar<Value>(text: string, values: object = {}): Steps<Value | undefined> {
  return Object.values((yield* first<Readonly<Record<string, Value>>>(text, values)) ?? {})[0]
}

/** Locks without a name, and the spaces of those with one. Builds that share a server agree on these numbers; two that are alike only wait for each other. */
export const LOCKS = { migration: 7_305_823_190_017, texts: 7_305_823_190_018, analytics: 7_305_823_190_018 }
export const SPACE = { recipient: 0, mailbox: 1, budget: 2, key: 2, health: 3, notice: 3, alerts: 4, mail: 4 }

export function* lock(space: number, name?: string): Steps<void> {
  yield { space, name: name && storableText(name) }
}

/** Journals changes before they are committed: a spare line does no harm, a missing one would be lost in a restore. */
export function* journal(...entries: readonly JournalEntry[]): Steps<void> {
  if (entries.length > 0) yield { journal: entries }
}

/** `a, b` as `a = r.a, b = r.b`, for what an `UPDATE` sets from another row. */
export const assigned = (columns: string, from = 'r') => columns.replace(/\w+/g, `$& = ${from}.$&`)

/** Inserts `@rows` into a table; what follows says what happens to those that it has. */
export const insertRows = (table: string, columns: string) =>
  `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM {rows ${table}: ${columns}} AS r WHERE true`

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Repeats a deletion of at most `most` rows, each committed alone, until it finds fewer. */
export async function deleteInSteps({ one }: Sql, text: string, values: object, most = ROWS_A_STEP) {
  while ((await one(run(text, values))) === most) await new Promise(setImmediate)
}

/** Reads rows of one statement: the names of its columns are changed once, not for each row. */
export function rowReader(): (row: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>> {
  let names: readonly (readonly [column: string, name: string])[] | undefined
  return (row) => {
    names ??= Object.keys(row).map((column) => [column, camelCase(column)])
    const read: Record<string, unknown> = {}
    for (const [column, name] of names) read[name] = row[column] ?? undefined
    return read
  }
}

export const camelCase = (column: string): string =>
  column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const columns = new Map<string, string>()

/** The column of a name. Each is changed once: there are few, and a round of lessons asks for them a thousand times. */
export function snakeCase(name: string): string {
  const known = columns.get(name)
  if (known !== undefined) return known
  const column = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  columns.set(name, column)
  return column
}

/** A parameter as both stores keep it alike: undefined is null, and a list is JSON, whose rows have the names of columns. */
export function boundValue(values: object, name: string): unknown {
  const value: unknown = values[name as keyof typeof values]
  if (typeof value === 'string') return storableText(value)
  if (!Array.isArray(value)) return value ?? null
  const rows = value.map(namedByColumns)
  const json = JSON.stringify(rows)
  // JSON escapes what no store keeps, too. A function that is called for each value takes five times as long.
  if (!/\\u(?:0000|d)/.test(json)) return json
  return JSON.stringify(rows, (_, one) => (typeof one === 'string' ? storableText(one) : one))
}

function namedByColumns(row: unknown): unknown {
  if (typeof row !== 'object' || row === null) return row
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [snakeCase(name), value]))
}

/** The text as every store can keep it: without NUL and halves of surrogate pairs, which PostgreSQL refuses. */
export const storableText = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()

export const TEXTS = {
  set: 'INSERT INTO meta (name, value) VALUES (@name, @value) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  drop: 'DELETE FROM meta WHERE name = @name',
  addressKeys: `SELECT value FROM meta WHERE name IN ('address_key', 'link_key')`,
  hold: `INSERT INTO meta (name, value) VALUES (@name, '{}') ON CONFLICT (name) DO UPDATE SET value = meta.value RETURNING value`,
  make: 'INSERT INTO meta (name, value) VALUES (@name, @value) ON CONFLICT DO NOTHING',
  addAudit: `${insertRows('audit', 'at, id, action, who, place, subject, details')} ON CONFLICT DO NOTHING`,
  listAudit:
    'SELECT id, at, action, who, place, subject, details FROM audit ORDER BY at DESC, id DESC LIMIT @limit',
}

/** `schema`: with a dot, where it is another than the store's. */
export const getMeta = (name: string, schema = ''): Steps<string | undefined> =>
  scalar(`SELECT value FROM ${schema}meta WHERE name = @name`, { name })

/** The value under a name; the first caller gives it. */
export function* getOrMake(name: string, value: string): Steps<string> {
  yield* run(TEXTS.make, { name, value })
  return (yield* getMeta(name)) ?? value
}

export function* getTime(name: string): Steps<number | undefined> {
  const time = Number((yield* getMeta(name)) ?? Number.NaN)
  return isTime(time) ? time : undefined
}

/** Undefined: takes the entry out. */
export function* setMeta(name: string, value: string | undefined): Steps<void> {
  if (value === undefined) yield* run(TEXTS.drop, { name })
  else yield* run(TEXTS.set, { name, value })
}

/** The keys by which erased addresses were hashed. */
export function* addressKeys(): Steps<readonly string[]> {
  return (yield* all<{ readonly value: string }>(TEXTS.addressKeys)).map(({ value }) => value)
}

/** A real write, read back; `more` bytes make the row grow, for which a full disk has no room. */
export function* ping(more = 0): Steps<void> {
  const mark = `${performance.now()}${' '.repeat(more)}`
  const written = yield* scalar(`${TEXTS.set} RETURNING value`, { name: 'ping', value: mark })
  // Another process may have written its own meanwhile.
  const isThere = (yield* getMeta('ping')) !== undefined
  if (written !== mark || !isThere) throw new TypeError('what was written could not be read back')
}

/** The names in `meta` of the configurations that replicas run with, and of the platform that has claimed a store. */
export const CONFIGURATIONS = 'configurations'
export const OWNER = 'platform'
/** Three looks of a minute each: a replica that was stopped is forgotten, and a deploy has this time to end. */
const RECENT_MS = 3 * MINUTE_MS

/** What a store keeps about itself, by name, and the log of what operators did with it. */
export function meta({ one, write }: Sql) {
  const owner = () => one(getMeta(OWNER))
  return {
    getOrCreate: (name: string, make: () => string) => write(() => getOrMake(name, make())),
    /** Notes what a replica runs with, and gives what the others do that were seen lately. */
    noteConfiguration: (replica: string, configuration: string, now: number) =>
      write(function* (): Steps<readonly string[]> {
        const held = yield* scalar<string>(TEXTS.hold, { name: CONFIGURATIONS })
        type Noted = Record<string, { at: number; configuration: string }>
        const { [replica]: _, ...noted }: Noted = JSON.parse(held ?? '{}')
        const others = Object.entries(noted).filter(([, { at }]) => Math.abs(now - at) < RECENT_MS)
        const next = Object.fromEntries([...others, [replica, { at: now, configuration }]])
        yield* setMeta(CONFIGURATIONS, JSON.stringify(next))
        return others.map(([, other]) => other.configuration)
      }),
    /** The platform that a store belongs to, by its name, which every build can read and older ones ignore. */
    owner: {
      name: owner,
      /** The first platform to claim a store keeps it, until another adopts it. Gives the name of the one that has it. */
      async claim(platform: string, adopt = false): Promise<string> {
        // Read first: each start asks, and only the first one writes.
        const name = await owner()
        if (name === platform || (name !== undefined && !adopt)) return name
        if (adopt) await one(setMeta(OWNER, platform))
        return write(() => getOrMake(OWNER, platform))
      },
    },
    /** Both stores refuse to change or delete an entry. */
    audit: {
      /** Records an action that has no transaction of its own. All others write their entry in theirs. */
      record: (entry: AuditEntry) => write(() => addAudit(entry)),
      /** The newest first. */
      list: (limit: number) => one(listAudit(limit)),
    },
  }
}

export function assertOwner(owner: string | undefined, platform: string): void {
  if (owner === undefined || owner === platform) return
  const error = cannotOpen`this store belongs to the platform ${JSON.stringify(owner)}, and this is ${JSON.stringify(platform)}: name that platform’s definition with --config, or another store. If the platform was renamed, start the daemon once with --adopt.`
  throw Object.assign(error, { code: 'OTHER_PLATFORM' })
}

/** Adds to the audit log, in the transaction of the action, and to the journal: a restore must not forget it. */
export function* addAudit(entry: AuditEntry | undefined): Steps<void> {
  if (entry === undefined) return
  yield* journal({ what: 'audited', at: entry.at, entry })
  yield* run(TEXTS.addAudit, { rows: [entry] })
}

export const listAudit = (limit: number) => all<AuditEntry>(TEXTS.listAudit, { limit })
