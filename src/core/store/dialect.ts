import { qualified } from './migrations.ts'

/** `$1` is the word's argument. */
type Spelling = string | ((argument: string) => string)

/** What the two stores spell differently. A text has `{word argument}`, such as `{each @ids}`. */
const WORDS: Readonly<Record<string, { readonly sqlite: Spelling; readonly postgres: Spelling }>> = {
  /** The number of elements of a JSON array in a column; 0 for anything else. */
  length: {
    sqlite: 'CASE WHEN json_valid($1) THEN json_array_length($1) ELSE 0 END',
    postgres: "CASE jsonb_typeof($1) WHEN 'array' THEN jsonb_array_length($1) ELSE 0 END",
  },
  /** A table of the texts in a JSON array, in its column `value`. */
  each: { sqlite: 'json_each($1)', postgres: 'jsonb_array_elements_text(CAST($1 AS jsonb)) AS value' },
  /** `{rows TABLE: COLUMN, …}`: the rows in the parameter `@rows`, in columns that are typed as the table has them. */
  rows: {
    // As JSONB each row is parsed once, and not for each of its columns.
    sqlite: (argument) =>
      `(SELECT ${argument.replace(/^\w+: /, '').replace(/\w+/g, "value ->> '$&' AS $&")} FROM jsonb_each(@rows))`,
    postgres: (argument) =>
      `jsonb_populate_recordset(NULL::platformctl.${argument.split(':')[0]}, CAST(@rows AS jsonb))`,
  },
  /** A whole number that a column holds as text; far too large for one that somebody damaged. */
  integer: {
    sqlite: "CASE WHEN $1 NOT GLOB '*[^0-9]*' THEN CAST($1 AS INTEGER) ELSE 2000000000 END",
    postgres: "CASE WHEN $1 ~ '^[0-9]{1,9}$' THEN $1::bigint ELSE 2000000000 END",
  },
  /** `{object 'key', value, …}` */
  object: { sqlite: 'json_object($1)', postgres: 'json_build_object($1)' },
  /** The bytes of a column of `rows`. */
  bytes: { sqlite: "unhex($1, '\\x')", postgres: '$1' },
  /** Orders probes by their first look. */
  inserted: { sqlite: 'rowid', postgres: 'place' },
  /** The number of a row within the transaction that reads it, where rows have numbers. */
  rowid: { sqlite: ', rowid', postgres: '' },
  /** Makes a query use an index, where the store takes such an order. */
  by: { sqlite: 'INDEXED BY $1', postgres: '' },
  /** Whether the lesson in hand has failed, in the words of each store's index of what is due. */
  failed: { sqlite: '(failures > 0) = 1', postgres: 'failures > 0' },
  neverFailed: { sqlite: '(failures > 0) = 0', postgres: 'failures = 0' },
  /** Sorts a text by its bytes, whatever the store's locale. */
  byBytes: { sqlite: '$1', postgres: '$1 COLLATE "C"' },
  /** True for texts that are not all printable ASCII. */
  isForeign: { sqlite: "$1 GLOB '*[^ -~]*'", postgres: "$1 ~ '[^ -~]'" },
  hasTable: {
    sqlite: 'SELECT 1 FROM sqlite_schema WHERE name = @table',
    postgres: "SELECT 1 FROM pg_tables WHERE schemaname = 'platformctl' AND tablename = @table",
  },
  tables: {
    sqlite: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    postgres: `SELECT tablename AS name FROM pg_tables
      WHERE schemaname = 'platformctl' AND tablename <> 'schema_version' ORDER BY tablename`,
  },
  columns: {
    sqlite: 'SELECT name FROM pragma_table_info(@table)',
    postgres: `SELECT column_name AS name FROM information_schema.columns
      WHERE table_schema = 'platformctl' AND table_name = @table`,
  },
  /** Where a table is that need not be one of ours. */
  schema: { sqlite: 'main', postgres: 'platformctl' },
  /** Finds a row if the store has a version of its schema, which is 0 otherwise. */
  hasVersion: {
    sqlite: 'SELECT 1',
    postgres: "SELECT 1 FROM pg_tables WHERE schemaname = 'platformctl' AND tablename = 'schema_version'",
  },
  version: {
    sqlite: 'SELECT user_version AS version FROM pragma_user_version',
    postgres: 'SELECT version FROM platformctl.schema_version',
  },
  setVersion: {
    sqlite: 'PRAGMA user_version = $1',
    postgres: 'UPDATE platformctl.schema_version SET version = $1',
  },
  /** While a change waits for its table, everybody else who uses that waits too. An autovacuum gives way after a second. */
  briefly: { sqlite: '', postgres: "SET LOCAL lock_timeout = '2s'" },
  newSchema: {
    sqlite: '',
    postgres: `CREATE SCHEMA IF NOT EXISTS platformctl;
      CREATE TABLE IF NOT EXISTS platformctl.schema_version (version integer NOT NULL);
      INSERT INTO platformctl.schema_version VALUES (0)`,
  },
}

export const spelled = (text: string, store: 'sqlite' | 'postgres'): string =>
  text.replace(/\{(\w+)(?: ([^{}]*))?\}/g, (all, word: string, argument = '') => {
    const spelling = Object.hasOwn(WORDS, word) ? WORDS[word]?.[store] : all
    return typeof spelling === 'function'
      ? spelling(argument)
      : (spelling ?? all).replaceAll('$1', () => argument)
  })

/** A statement as a driver takes it: its text, and the names of its parameters in the order of their first use. */
export type Compiled = { readonly text: string; readonly names: readonly string[] }

const PARAMETER = /@([a-z]\w*)/gi

/** For SQLite: without row locks. The plus changes no value; without it, SQLite prepares a `LIMIT @x` again for each run. */
export function forSqlite(source: string): Compiled {
  const text = spelled(source, 'sqlite').replace(/ FOR UPDATE\b(?: SKIP LOCKED\b)?/g, '')
  return { text: text.replace(PARAMETER, '+@$1'), names: namesOf(text) }
}

/** For PostgreSQL: numbered parameters, and tables in the schema `platformctl`. `leaseNow` replaces its parameter. */
export function forPostgres(source: string, leaseNow?: string): Compiled {
  const text = spelled(source, 'postgres').replaceAll('@leaseNow', leaseNow ?? 'CAST(@leaseNow AS bigint)')
  const names = namesOf(text)
  return {
    text: qualified(text).replace(PARAMETER, (_, name: string) => `$${names.indexOf(name) + 1}`),
    names,
  }
}

const namesOf = (text: string): readonly string[] => [
  ...new Set([...text.matchAll(PARAMETER)].map(([, name = '']) => name)),
]
