import { systemClock } from '../../core/clock.ts'
import type { Settings, StoreAddress } from '../../core/env/settings.ts'
import { malformedStoreSentence, malformedStores, type StoreVariable } from '../../core/env/settings.ts'
import { PlatformError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { type Once, once } from '../../core/once.ts'
import type { Random } from '../../core/random.ts'
import { type Secret, secret } from '../../core/secret.ts'
import { assertOwner } from '../../core/store/meta.ts'
import { openStore } from '../../core/store/open.ts'
import { type Store, StoreOpenError } from '../../core/store/store.ts'
import type { DaemonParts, PlatformOptions } from '../embedding.ts'

/** The keys in use: those from the settings, or else those that the store keeps. */
export interface Keys {
  /** Signs unsubscribe links. */
  readonly linkKey: Secret
  /** Earlier keys: links signed before the secret was set, or with the previous secret, still work. */
  readonly oldLinkKeys: readonly Secret[]
  /** Hashes addresses, so that one can be recognized without being stored. */
  readonly addressKey: Secret
}

export interface Stores {
  readonly store: Once<Store>
  /** JOB_STORE_URL where that is set, else the store. */
  readonly jobStore: Once<Store>
  readonly keys: Once<Keys>
  /** The store, if something has opened it, or the host gave it. */
  readonly known: () => Promise<Store | undefined>
  /** Whether anything is kept beyond this process, or the store has been opened. */
  readonly isKept: () => Promise<boolean>
}

/** The store, the store of jobs and the keys in them, each opened when first asked for. */
export function openStores({
  options,
  platform,
  settings,
  random,
  log,
}: {
  readonly options: Pick<PlatformOptions & DaemonParts, 'env' | 'store' | 'clock' | 'onLost'>
  /** Its name: the store that is opened must belong to it. */
  readonly platform: string
  readonly settings: Settings
  readonly random: Random
  readonly log: Log
}): Stores {
  const { onLost } = options
  const malformed = malformedStores(options.env)
  const assertWellFormed = (name: StoreVariable) => {
    if (malformed.includes(name))
      throw new PlatformError('store_unavailable', 'The store is not configured correctly.', {
        cause: new StoreOpenError(malformedStoreSentence(name)),
      })
  }
  const { address, poolSize, jobStore: jobAddress } = settings.store
  const store = once(async () => {
    if (options.store !== undefined) return options.store
    assertWellFormed('STORE_URL')
    if (address === undefined)
      log.warn(
        'store_in_memory',
        'STORE_URL is not set: subscriptions are kept in memory and end with the process',
      )
    const leaseClock = ownTime(options.clock, address)
    const opened = await openStore(address, { poolSize, log, onLost, leaseClock })
    try {
      assertOwner(await opened.owner.claim(platform), platform)
      return opened
    } catch (cause) {
      await opened.close()
      if (!(cause instanceof StoreOpenError)) throw cause
      log.error('store_of_another_platform', cause.message)
      throw new PlatformError('store_unavailable', 'The store belongs to another platform.', { cause })
    }
  })
  const jobStore = once(async () => {
    assertWellFormed('JOB_STORE_URL')
    // One connection is enough: the only statement is the health ping, one at a time.
    return jobAddress === undefined ? store() : openStore(jobAddress, { poolSize: 1, log, onLost })
  })
  const keys = once(async () => {
    const kept = await store()
    const stored = async (name: string) =>
      secret(await kept.getOrCreate(name, () => Buffer.from(random.bytes(32)).toString('base64url')))
    const link = await stored('link_key')
    const { linkSecret } = settings
    return {
      linkKey: linkSecret?.current ?? link,
      oldLinkKeys: [...(linkSecret?.accepted.slice(1) ?? []), ...(linkSecret ? [link] : [])],
      addressKey: await stored('address_key'),
    }
  })
  const known = async () => options.store ?? store.opened()
  return {
    store,
    jobStore,
    keys,
    known,
    isKept: async () => address !== undefined || (await known()) !== undefined,
  }
}

/** A host that brings its own clock has no other time, but for a server's, which it shares with others. */
function ownTime(clock: PlatformOptions['clock'], address: StoreAddress | undefined) {
  return clock === undefined || clock === systemClock || address?.kind === 'postgres' ? undefined : clock.now
}
