import { first, run, type Sql, type Steps } from './sql.ts'
import { StoreOpenError, type StoreOwner } from './store.ts'

export const TEXTS = {
  find: `SELECT value FROM meta WHERE name = 'platform'`,
  claim: `INSERT INTO meta (name, value) VALUES ('platform', @platform) ON CONFLICT DO NOTHING`,
  adopt: `INSERT INTO meta (name, value) VALUES ('platform', @platform)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
  get: 'SELECT value FROM meta WHERE name = @name',
  make: 'INSERT INTO meta (name, value) VALUES (@name, @value) ON CONFLICT DO NOTHING',
}

/** The value stored under a name; the first caller makes it. */
export const getOrCreate =
  ({ write }: Sql) =>
  (name: string, make: () => string): Promise<string> =>
    write(function* () {
      yield* run(TEXTS.make, { name, value: make() })
      return (yield* first<{ value: string }>(TEXTS.get, { name }))?.value ?? ''
    })

/** Keeps the owner's name where every build can read it, and older ones ignore it. */
export function storeOwner({ one, write }: Sql): StoreOwner {
  function* find(): Steps<string | undefined> {
    return (yield* first<{ readonly value: string }>(TEXTS.find))?.value
  }
  const name = () => one(find())
  return {
    name,
    // Read first: each start asks, and only the first one writes.
    claim: async (platform, { adopt = false } = {}) => {
      const owner = await name()
      if (owner === platform || (owner !== undefined && !adopt)) return owner
      return write(function* () {
        yield* run(adopt ? TEXTS.adopt : TEXTS.claim, { platform })
        return (yield* find()) ?? platform
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
