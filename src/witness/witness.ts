import { readFileSync } from 'node:fs'
import path from 'node:path'
import { writeWhole } from '../core/daemon-record.ts'
import { faultName, faultOf } from '../core/errors.ts'
import { type Host, within } from '../core/host.ts'
import { type Channel, createAlertLanes } from '../core/incidents/channels.ts'
import { unheardReason } from '../core/incidents/conditions.ts'
import { attempt, jsonObject } from '../core/is-record.ts'
import type { Network } from '../core/network/get.ts'
import { openStore } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { trimEnd } from '../core/trim-end.ts'
import { readSnapshot, type SignedSnapshot, sign, signingKey, type WitnessSecret } from '../core/witness.ts'
import { askPeer, askPlatform } from './ask.ts'
import type { KeptStatus } from './files.ts'
import { followOutages } from './outages.ts'
import { isOutage, NOTHING_SEEN, nextRound, type View, type Vote, type Voting } from './votes.ts'

interface WitnessOptions {
  readonly own: WitnessSecret
  readonly platform: string
  readonly peers: readonly string[]
  readonly dataFolder: string
  readonly channels: readonly Channel[]
  /** Keeps the status as files elsewhere, too. */
  readonly publish?: ((status: KeptStatus) => Promise<void>) | undefined
  readonly roundMs?: number
  readonly network?: Network
}

export type Witness = Awaited<ReturnType<typeof startWitness>>
export type Known = ReturnType<Witness['known']>

const NOT_KEPT =
  'the data folder cannot be written: check its disk and its owner; alerts still leave, and a restart may repeat them'
const NEVER_REACHED =
  'nobody is alerted of an outage before this witness has reached the platform once: check --platform, --name and WITNESS_SECRET'
const UNREAD =
  'the platform answers, and gives no status that this build can read: look at its store and its version'
const NO_CHANNEL = 'nobody is alerted: set ALERT_WEBHOOK_URL or ALERT_EMAIL_TO on this machine'
const STATE = 'witness.json'
const ROUND_MS = 30_000
/** Rounds that have to agree before the view changes. */
const ROUNDS_AGREE = 2

/** Watches the platform, keeps its last status, and votes with its peers on outages. Rounds begin at once. */
export async function startWitness(host: Host, options: WitnessOptions) {
  const { clock, random, log } = host
  const { own, platform, channels, publish, network, roundMs = ROUND_MS } = options
  const isMute = channels.length === 0
  const peers = [...new Set(options.peers)]
  const state = path.join(options.dataFolder, STATE)
  const file = path.join(options.dataFolder, 'witness.sqlite')
  const store = await openStore({ kind: 'sqlite', file }, { log })
  const key = signingKey(own.secret, 'witness')
  const over = new AbortController()
  const tellFrom = ({ incidents }: Store) => ({
    follow: followOutages(clock, incidents, channels, own.name),
    lanes: createAlertLanes(host, incidents, channels, undefined, over.signal),
  })
  const kept = tellFrom(store)
  let memory: Store | undefined
  /** An outage that the disk does not take: its alerts are kept here until it does. */
  let unkept: (ReturnType<typeof tellFrom> & { readonly id: string }) | undefined
  /** Why this witness cannot do its own work. */
  let fault: string | undefined
  let unread: string | undefined
  let unpublished: string | undefined
  const ask = { monotonic: clock.monotonic, signal: over.signal, network }
  const newNonce = () => Buffer.from(random.bytes(18)).toString('base64url')
  let { signed, confirmedAt, voting } = read(state)
  const keep = () =>
    writeWhole(state, JSON.stringify({ platform, signed, confirmedAt, voting } satisfies Kept))
  let snapshot = signed && readSnapshot(signed)
  let view: View = 'unknown'
  let reason: string | undefined
  let against = 0
  /** The last outage that this witness saw, for the platform’s log. */
  let down: { readonly since: number; readonly reason: string } | undefined
  let unreported: { readonly seconds: number; readonly reason: string } | undefined
  /** Why each peer is not heard; undefined: it is. */
  const heard: Record<string, string | undefined> = {}
  /** Peers that are a witness which is counted already, such as a copy of this one: three of one name are one. */
  const copies = new Set<string>()
  const unheard = new Map<string, { readonly why: string | undefined; readonly rounds: number }>()
  /** Says once why an address is not heard. The other side may only be starting: the second round says so. */
  function note(address: string, why: string | undefined, event: string, means: string): void {
    const before = unheard.get(address) ?? { why, rounds: 0 }
    const rounds = before.why === why ? before.rounds + 1 : 1
    unheard.set(address, { why, rounds })
    if (why !== undefined && rounds === ROUNDS_AGREE) log.warn(event, means, { address, reason: why })
  }

  async function look(): Promise<void> {
    const report = { at: clock.now(), nonce: newNonce(), have: signed?.signature, outage: unreported }
    const found = await askPlatform(platform, own, report, ask)
    const reached = !('reason' in found)
    reason = reached ? undefined : found.reason
    if (reached) {
      unreported = undefined
      const fresh = found.snapshot && readSnapshot(found.snapshot)
      if (fresh) [signed, snapshot] = [found.snapshot, fresh]
      const isCurrent = signed !== undefined && found.current === signed.signature
      if (isCurrent) confirmedAt = clock.now()
      unread = isCurrent ? undefined : UNREAD
      // A clock that was set back would call the page new until it is where it was.
    } else confirmedAt = Math.min(confirmedAt, clock.now())
    const now: View = reached ? 'reachable' : 'unreachable'
    // A witness that has never reached the platform has the wrong address or secret: that is no outage.
    const isStranger = !reached && confirmedAt === 0 && view === 'unknown'
    note(platform, isStranger ? reason : undefined, 'platform_never_reached', NEVER_REACHED)
    if (isStranger) return
    against = now === view ? 0 : against + 1
    if (against < ROUNDS_AGREE && !(view === 'unknown' && reached)) return
    against = 0
    view = now
    if (reached) {
      // The clock may have been set back meanwhile.
      if (down)
        unreported = {
          seconds: Math.max(0, Math.round((clock.now() - down.since) / 1000)),
          reason: down.reason.slice(0, 200),
        }
      down = undefined
      log.info('platform_reached', 'the platform is reachable from here', { reason: null })
    } else {
      down = { since: clock.now() - roundMs, reason: reason ?? '' }
      log.warn('platform_unreachable', 'the platform cannot be reached from here', { reason: down.reason })
    }
  }

  async function listen(): Promise<readonly Vote[]> {
    const nonce = newNonce()
    const keys = snapshot?.witnesses ?? {}
    const found = await Promise.all(peers.map((peer) => askPeer(peer, { nonce, keys }, ask)))
    const votes = new Map<string, Vote>()
    for (const [index, peer] of peers.entries()) {
      const said = found[index]
      if (said === undefined || 'reason' in said) heard[peer] = said?.reason
      else {
        const isCopy = said.name === own.name || votes.has(said.name)
        copies[isCopy ? 'add' : 'delete'](peer)
        heard[peer] = isCopy
          ? `it says that it is ${said.name}, which is counted already: give each witness its own name and secret`
          : undefined
        if (!isCopy) votes.set(said.name, said)
      }
      note(peer, heard[peer], 'peer_not_heard', 'the vote of another witness does not arrive')
    }
    return [...votes.values()]
  }

  async function round(): Promise<void> {
    const [votes] = await Promise.all([listen(), look()])
    if (over.signal.aborted) return
    const next = nextRound({
      self: own.name,
      view,
      mute: isMute,
      heard: votes,
      configured: peers.length + 1 - copies.size,
      before: voting,
      since: down?.since ?? clock.now(),
      newId: () => `${own.name}-${clock.now().toString(36)}`,
    })
    const outage = next.after.outage ?? voting.outage
    let failure: unknown
    // In the store first: after a crash in between, the next round says the same again.
    if (unkept?.id !== outage?.id || outage === undefined)
      await kept.follow(next, outage, reason).catch(async (error: unknown) => {
        // Its pages need no disk to say that the platform is back.
        if (next.announces === 'closed') voting = { ...voting, clear: voting.clear + 1 }
        if (next.announces === 'closed') throw error
        failure = error
        if (next.announces !== 'open' || outage === undefined) return
        memory ??= await openStore(undefined)
        unkept = { id: outage.id, ...tellFrom(memory) }
      })
    if (unkept?.id === outage?.id) await unkept?.follow(next, outage, reason)
    voting = next.after
    failure ??= faultOf(keep)
    publishing ??= publishNow().finally(() => {
      publishing = undefined
    })
    // The next round looks again, whatever hangs.
    const woken = Promise.allSettled([...kept.lanes, ...(unkept?.lanes ?? [])].map((wake) => wake()))
    const told = await within(roundMs, woken, () => [])
    failure ??= told.find(({ status }) => status === 'rejected')
    // A full disk must not silence a witness, nor those that wait for the outage that it has claimed.
    if (failure !== undefined && fault === undefined) log.error('not_kept', NOT_KEPT)
    fault = failure === undefined ? ((await unheardOf(outage)) ?? unread ?? unpublished) : NOT_KEPT
    if (isMute) fault ??= NO_CHANNEL
  }

  /** That alerts of this outage do not arrive. */
  async function unheardOf(outage: typeof voting.outage): Promise<string | undefined> {
    const unheard = outage && unheardReason(await store.incidents.messages([outage.id]))
    return unheard && `its alerts do not arrive ${unheard}`
  }

  /** Waited for by no round: a folder or a bucket that hangs must not delay an alert. */
  let publishing: Promise<void> | undefined
  async function publishNow(): Promise<void> {
    if (snapshot === undefined) return
    try {
      await publish?.({ snapshot, confirmedAt, isOutage: isOutage(voting) })
      unpublished = undefined
    } catch (error) {
      unpublished = 'the status could not be kept as files; the next round tries again'
      const reason = error instanceof Error ? error.message : 'unknown'
      log.warn('publish_failed', unpublished, { reason })
    }
  }

  let running = Promise.resolve()
  const begin = () => {
    running = running.then(round).catch((error: unknown) => {
      fault = 'a round failed; the next one tries again'
      log.error('round_failed', fault, { fault: faultName(error) })
    })
    return running
  }
  const loop = (async () => {
    while (!over.signal.aborted) {
      await begin()
      await clock.sleep(roundMs, over.signal).catch(() => {})
    }
  })()

  return {
    known: () => ({ snapshot, confirmedAt, view, reason, isOutage: isOutage(voting), peers: heard, fault }),
    /** The signed vote that answers a peer’s question. */
    vote(nonce: string) {
      const { outage, closers, closed } = voting
      const vote = JSON.stringify({ name: own.name, nonce, view, mute: isMute, outage, closers, closed })
      return { vote, signature: sign(vote, key) }
    },
    /** One round at once, for tests. */
    round: begin,
    async stop() {
      over.abort()
      await loop
      await running
      await publishing
      await store.close()
      await memory?.close()
    },
  }
}

interface Kept extends Pick<KeptStatus, 'confirmedAt'> {
  /** Its address. Absent in what an older build kept. */
  readonly platform?: string
  readonly signed?: SignedSnapshot | undefined
  readonly voting: Voting
}

/** The other platform whose witness has this folder; undefined if there is none. Two would end each other’s outages. */
export function otherPlatform(dataFolder: string, platform: string): string | undefined {
  const { platform: kept = platform, confirmedAt, voting } = read(path.join(dataFolder, STATE))
  const rootOf = (url: string) => trimEnd(URL.parse(url)?.href ?? url, '/')
  // An address that was never reached may be a mistake.
  const isUnused = confirmedAt === 0 && voting.outage === undefined
  return isUnused || rootOf(kept) === rootOf(platform) ? undefined : kept
}

/** A file that cannot be read counts as none, and is replaced. */
function read(file: string): Kept {
  const kept = jsonObject(attempt(() => readFileSync(file, 'utf8')) ?? '') as Partial<Kept>
  return { confirmedAt: 0, voting: NOTHING_SEEN, ...kept }
}
