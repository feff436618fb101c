import { MINUTE_MS } from '../durations.ts'
import { StoreOpenError } from './errors.ts'
import { isTime } from './journal.ts'
import { all, run, type Sql, type Steps, scalar } from './sql.ts'

export const TEXTS = {
  set: 'INSERT INTO meta (name, value) VALUES (@name, @value) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  drop: 'DELETE FROM meta WHERE name = @name',
  addressKeys: `SELECT value FROM meta WHERE name IN ('address_key', 'link_key')`,
  hold: `INSERT INTO meta (name, value) VALUES (@name, '{}') ON CONFLICT (name) DO UPDATE SET value = meta.value RETURNING value`,
  make: 'INSERT INTO meta (name, value) VALUES (@name, @value) ON CONFLICT DO NOTHING',
}

/** `schema`: with a dot, where it is another than the store's. */
export const getMeta = (name: string, schema = ''): Steps<string | undefined> =>
  scalar(`SELECT value FROM ${schema}meta WHERE name = @name`, { name })

/** A time stored under a name. */
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
  yield* setMeta('ping', mark)
  if ((yield* getMeta('ping')) !== mark) throw new TypeError('what was written could not be read back')
}

/** The value stored under a name; the first caller makes it. */
export const getOrCreate =
  ({ write }: Sql) =>
  (name: string, make: () => string): Promise<string> =>
    write(function* () {
      yield* run(TEXTS.make, { name, value: make() })
      return (yield* getMeta(name)) ?? ''
    })

/** The names in `meta` of the configurations that replicas run with, and of the platform that has claimed a store. */
export const CONFIGURATIONS = 'configurations'
export const OWNER = 'platform'
/** Three looks of a minute each: a replica that was stopped is forgotten, and a deploy has this time to end. */
const RECENT_MS = 3 * MINUTE_MS

/** Notes what a replica runs with, and gives what the others do that were seen lately. */
export const noteConfiguration =
  ({ write }: Sql) =>
  (replica: string, configuration: string, now: number): Promise<readonly string[]> =>
    write(function* () {
      const held = yield* scalar<string>(TEXTS.hold, { name: CONFIGURATIONS })
      const noted: Record<string, { at: number; configuration: string }> = JSON.parse(held ?? '{}')
      const others = Object.entries(noted).filter(
        ([name, { at }]) => name !== replica && Math.abs(now - at) < RECENT_MS,
      )
      const next = Object.fromEntries([...others, [replica, { at: now, configuration }]])
      yield* setMeta(CONFIGURATIONS, JSON.stringify(next))
      return others.map(([, other]) => other.configuration)
    })

/** The platform that a store belongs to, by its name, which every build can read and older ones ignore. */
export function storeOwner({ one, write }: Sql) {
  /** Undefined until a platform has claimed the store. */
  const name = () => one(getMeta(OWNER))
  return {
    name,
    /** The first platform to claim a store keeps it, until another adopts it. Gives the name of the one that has it. */
    async claim(platform: string, { adopt = false }: { adopt?: boolean | undefined } = {}): Promise<string> {
      // Read first: each start asks, and only the first one writes.
      const owner = await name()
      if (owner === platform || (owner !== undefined && !adopt)) return owner
      return write(function* () {
        yield* run(adopt ? TEXTS.set : TEXTS.make, { name: OWNER, value: platform })
        return (yield* getMeta(OWNER)) ?? platform
      })
    },
  }
}

/** Refuses to act for one platform on the store of another. */
export function assertOwner(owner: string | undefined, platform: string): void {
  if (owner === undefined || owner === platform) return
  const error = new StoreOpenError(
    `this store belongs to the platform ${JSON.stringify(owner)}, and this is ${JSON.stringify(platform)}: name that platform’s definition with --config, or another store. If the platform was renamed, start the daemon once with --adopt.`,
  )
  throw Object.assign(error, { code: 'OTHER_PLATFORM' })
}
