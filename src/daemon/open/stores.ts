import { once } from '../../core/calls.ts'
import { isSameStore, type RecordedStore, recordedStore } from '../../core/daemon-record.ts'
import type { Settings, StoreAddress } from '../../core/env/settings.ts'
import { malformedStoreSentence, type StoreVariable } from '../../core/env/settings.ts'
import { PlatformError } from '../../core/errors.ts'
import { type Host, systemClock } from '../../core/host.ts'
import { secret } from '../../core/secret.ts'
import { StoreOpenError } from '../../core/store/errors.ts'
import { openStore } from '../../core/store/open.ts'
import { assertOwner } from '../../core/store/sql.ts'
import type { Store, StoreOptions } from '../../core/store/store.ts'
import type { OpenOptions } from '../embedding.ts'

const IN_MEMORY = 'STORE_URL is not set: subscriptions are kept in memory and end with the process'
const NEW =
  'this store is new, and the last daemon of this folder had another one: to move what is there, stop this daemon and follow platformctl runbook moving-day'
const OTHER =
  'the last daemon of this folder had another store: unless that was copied into this one, stop this daemon now and set STORE_URL to the other, or lessons that it has sent are sent again'

export type Stores = ReturnType<typeof openStores>

/** The store, the store of jobs and the keys in them, each opened when first asked for. */
export function openStores(
  { clock, random, log }: Host,
  { store: given, platform: { name }, onLost }: OpenOptions,
  { store: { address, poolSize, jobStore: jobAddress, malformed }, linkKeys, areLinksInDoubt }: Settings,
) {
  const assertWellFormed = (variable: StoreVariable) => {
    if (malformed.includes(variable))
      throw new PlatformError('store_unavailable', 'The store is not configured correctly.', {
        cause: new StoreOpenError(malformedStoreSentence(variable)),
      })
  }
  // A host that brings its own clock has no other time, but for a server's, which it shares with others.
  const leaseClock = clock === systemClock || address?.kind === 'postgres' ? undefined : clock.now
  let isEnded = false
  const store = once(async () => {
    if (given !== undefined) return given
    if (isEnded) throw new PlatformError('store_unavailable', 'The platform was closed.')
    assertWellFormed('STORE_URL')
    if (address === undefined) log.warn('store_in_memory', IN_MEMORY)
    const options = { poolSize, log, onLost, leaseClock }
    return openOwnedStore(address, name, options).catch((cause: unknown) => {
      if (!(cause instanceof StoreOpenError)) throw cause
      log.error('store_not_opened', cause.message)
      throw new PlatformError('store_unavailable', 'The store cannot be opened; the log says why.', { cause })
    })
  })
  /** JOB_STORE_URL where that is set, else the store. */
  const jobStore = once(async () => {
    assertWellFormed('JOB_STORE_URL')
    // One connection is enough: the only statement is the health ping, one at a time.
    return jobAddress === undefined ? store() : openStore(jobAddress, { poolSize: 1, log, onLost })
  })
  /** The keys in use: those from the settings, or else those that the store keeps. */
  const keys = once(async () => {
    const kept = await store()
    const stored = async (key: string) =>
      secret(await kept.getOrCreate(key, () => Buffer.from(random.bytes(32)).toString('base64url')))
    const link = await stored('link_key')
    // Earlier keys: links signed before the secret was set, or with the previous secret, still work.
    const [linkKey, ...oldLinkKeys] = [...linkKeys, link] as const
    /** Hashes addresses, so that one can be recognized without being stored. */
    const addressKey = await stored('address_key')
    return { linkKey, oldLinkKeys, areLinksInDoubt, addressKey }
  })
  /** The store, if something has opened it, or the host gave it. */
  const known = async () => given ?? store.opened()
  /** Whether anything is kept beyond this process, or the store has been opened. */
  const isKept = async () => address !== undefined || (await known()) !== undefined
  /** Closes the store, and opens none from now on. One that the host gave is left open. */
  const end = async () => {
    isEnded = true
    return given ?? (await store.opened())?.close()
  }
  return { store, jobStore, keys, known, isKept, end }
}

/** Opens a store, which the first platform claims; warns a daemon that had another one `before`. */
export async function openOwnedStore(
  address: StoreAddress | undefined,
  platform: string,
  options: StoreOptions & { readonly before?: RecordedStore | undefined },
  adopt?: boolean,
): Promise<Store> {
  const { before, log } = options
  const store = await openStore(address, options)
  try {
    const isNew = (await store.owner.name()) === undefined
    assertOwner(await store.owner.claim(platform, adopt), platform)
    if (before && address && !isSameStore(before, recordedStore(address)))
      log?.warn(isNew ? 'store_new' : 'store_changed', isNew ? NEW : OTHER, { before: before.location })
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}
