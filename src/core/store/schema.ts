import { StoreOpenError } from './errors.ts'
import { getMeta, setMeta } from './meta.ts'
import { type Dialect, first, lock, type Sql, type Steps, script } from './sql.ts'
import type { StoreSchema } from './store.ts'

/** The oldest schema whose builds can run on the newest: raised by a step that changes what they rely on. */
const READABLE_FROM = 1
/** The number of a lock is platformctl's own. */
const MIGRATION_LOCK = 7_305_823_190_017

/** The schema that a build brings its stores to. */
export interface Schema {
  readonly steps: readonly string[]
  /** What has it, as a sentence begins: a file, or a server. */
  readonly place: string
}

export function* hasTable({ hasTable: query }: Dialect, table: string): Steps<boolean> {
  return (yield* first(query, { table })) !== undefined
}

/**
 * The version of a store's schema, and whether a build that knows `latest` can run on it. Steps only add, so the build
 * before runs on a newer schema and the code alone can be rolled back; but only if the newer build declared it for
 * exactly this version (`VERSION:OLDEST`).
 */
export function* readSchema(
  dialect: Dialect,
  latest: number,
): Steps<StoreSchema & { readonly readable: boolean }> {
  const version = yield* dialect.version()
  if (version <= latest) return { version, latest, readable: true }
  const said = (yield* hasTable(dialect, 'meta')) ? yield* getMeta('readable_from') : undefined
  const [of, from = Number.NaN] = said?.split(':').map(Number) ?? []
  return { version, latest, readable: of === version && from <= latest }
}

/** The version of a schema that this build can run on; throws if it cannot. */
export function* assertReadable(dialect: Dialect, { steps, place }: Schema): Steps<number> {
  const { version, latest, readable } = yield* readSchema(dialect, steps.length)
  if (readable) return version
  throw new StoreOpenError(
    `${place} was written by a newer platformctl (schema ${version}, this build knows ${latest}): run that version, or restore a backup made before it.`,
  )
}

/**
 * Additive steps, each whole or absent, under a lock so that two processes cannot both run one. A new store gets all of
 * them in one commit: a wait for the disk after each would be most of the time that it takes to make.
 */
export async function migrate(
  { dialect, read, write }: Pick<Sql, 'dialect' | 'read' | 'write'>,
  schema: Schema,
): Promise<void> {
  function* advance(): Steps<number> {
    // A second migration waits here, then finds the step done.
    yield* lock(MIGRATION_LOCK)
    const version = yield* assertReadable(dialect, schema)
    const next = schema.steps.slice(version, version === 0 ? undefined : version + 1)
    if (version === 0) yield* dialect.setVersion(0)
    for (const [index, step] of next.entries()) yield* take(dialect, step, version + index + 1)
    return version + next.length
  }
  let version = await read(() => assertReadable(dialect, schema))
  while (version < schema.steps.length) version = await write(advance)
}

function* take(dialect: Dialect, step: string, version: number): Steps<void> {
  yield* script(step)
  yield* dialect.setVersion(version)
  if (!(yield* hasTable(dialect, 'meta'))) return
  // Declared by the build that writes the schema, because an earlier one cannot know what a later one changes. It never
  // goes down: the store's content, such as a second course, may have shut older builds out.
  const from = Number((yield* getMeta('readable_from'))?.split(':')[1])
  yield* setMeta('readable_from', `${version}:${Math.max(Number.isInteger(from) ? from : 0, READABLE_FROM)}`)
}
