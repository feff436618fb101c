import { cannotOpen } from './errors.ts'
import { first, getMeta, LOCKS, lock, type Sql, type Steps, scalar, setMeta } from './sql.ts'

/** The oldest schema whose builds can run on the newest: raised by a step that changes what they rely on. */
const READABLE_FROM = 1

export interface StoreSchema {
  readonly version: number
  /** The version that this build migrates to. */
  readonly latest: number
  /** The name of the platform that has claimed it; absent before one has, or if it was not asked for. */
  readonly owner?: string | undefined
}

/** The schema that a build brings its stores to. */
export interface Schema {
  readonly steps: readonly string[]
  /** What has it, as a sentence begins: a file, or a server. */
  readonly place: string
  readonly onMigrate?: OnMigrate | undefined
}

/** Told before the steps of a store that an older build has made: the version that it has, and the one that it gets. */
export type OnMigrate = (from: number, to: number) => void

export function* hasTable(table: string): Steps<boolean> {
  return (yield* first('{hasTable}', { table })) !== undefined
}

/** The version of the schema; 0: there is nothing of ours yet. */
export function* schemaVersion(): Steps<number> {
  const isThere = (yield* first('{hasVersion}')) !== undefined
  return (isThere ? yield* scalar<number>('{version}') : undefined) ?? 0
}

/** Closes the store to builds that know only schemas before `oldest`, if it is not yet; `migrated`: to this version. */
export function* closeTo(oldest: number, migrated?: number): Steps<void> {
  const from = Number((yield* getMeta('readable_from'))?.split(':')[1] ?? 0)
  if (migrated === undefined && from >= oldest) return
  const version = migrated ?? (yield* schemaVersion())
  yield* setMeta('readable_from', `${version}:${Math.max(from || 0, oldest)}`)
}

/** A value of `meta`, which a store has only from some version on. */
export function* metaIn(name: string): Steps<string | undefined> {
  return (yield* hasTable('meta')) ? yield* getMeta(name) : undefined
}

/**
 * The version of a store's schema, and whether a build that knows `latest` can run on it: on a newer one only if the
 * build that wrote it declared so for exactly this version (`VERSION:OLDEST`).
 */
export function* readSchema(latest: number): Steps<StoreSchema & { readonly readable: boolean }> {
  const version = yield* schemaVersion()
  if (version <= latest) return { version, latest, readable: true }
  const [of, from = Number.NaN] = (yield* metaIn('readable_from'))?.split(':').map(Number) ?? []
  return { version, latest, readable: of === version && from <= latest }
}

/** The version of a schema that this build can run on; throws if it cannot. */
export function* assertReadable({ steps, place }: Schema): Steps<number> {
  const { version, latest, readable } = yield* readSchema(steps.length)
  if (readable) return version
  throw cannotOpen`${place} was written by a newer platformctl (schema ${version}, this build knows ${latest}): run that version, or restore a backup made before it.`
}

/**
 * All steps as one script for a new store, with the columns that later steps add in the statements that create their
 * tables, where ALTER TABLE would have put them: SQLite reads the whole schema again after each ALTER.
 */
export function atOnce(steps: readonly string[]): string {
  const added: Record<string, string> = {}
  const rest = steps.join(';\n').replace(/ALTER TABLE (\S+) ADD COLUMN ([^;]+);?/g, (_, table, column) => {
    added[table] = `${added[table] ?? ''}, ${column}`
    return ''
  })
  return rest.replace(
    /CREATE TABLE (\S+) \([\s\S]*?(?=, *\n? *(?:PRIMARY KEY|UNIQUE) \(|\)(?: STRICT|;))/g,
    (created, table) => created + (added[table] ?? ''),
  )
}

/** Additive steps, each whole, one process at a time. A new store gets all of them in one commit, which waits for the disk once. */
export async function migrate({ read, write }: Pick<Sql, 'read' | 'write'>, schema: Schema): Promise<void> {
  function* advance(): Steps<number> {
    // A second migration waits here, then finds the step done.
    yield* lock(LOCKS.migration)
    const version = yield* assertReadable(schema)
    if (version >= schema.steps.length) return version
    const [reached, step = ''] =
      version === 0
        ? [schema.steps.length, `{newSchema};${atOnce(schema.steps)}`]
        : [version + 1, schema.steps[version]]
    yield { script: `{briefly};${step};\n{setVersion ${reached}}` }
    // By the build that writes the schema. It never goes down: a second course may have shut older builds out.
    if (yield* hasTable('meta')) yield* closeTo(READABLE_FROM, reached)
    return reached
  }
  let version = await read(() => assertReadable(schema))
  if (version > 0 && version < schema.steps.length) schema.onMigrate?.(version, schema.steps.length)
  while (version < schema.steps.length) version = await write(advance)
}
