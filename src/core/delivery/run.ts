import { setMaxListeners } from 'node:events'
import { createSemaphore } from '../calls.ts'
import { PlatformError } from '../errors.ts'
import type { Host } from '../host.ts'
import { createLease, LATE, LEASE_MS, type Lease } from './lease.ts'
import { createMarker } from './marker.ts'
import { createRefusals, isRefusal, type Refusal, unclearScope } from './refusals.ts'
import { type Delivery, isAnswer, recordOf } from './retries.ts'
import type { Attempted, Ready, Source } from './source.ts'

/** More claims in work than messages out, so that many outcomes can share one durable commit. */
const SLOTS = 250
const BATCH = 400
/** A provider that limits our rate for no longer is waited for, and gets one message after the other for a while. */
const BRIEF_MS = 10_000
const MOST_LIMITS = 5
/** One in this many of each batch is reserved for retries, so that retries and new jobs cannot starve each other. */
const RETRY_SHARE = 20

export interface RunOptions {
  readonly limit?: number
  /** The time after which it ends, out of time. */
  readonly forMs?: number | undefined
  /** Ends a run after the messages that are out. */
  readonly signal?: AbortSignal | undefined
}

export interface Ran {
  readonly sent: number
  /** Why it stopped before all was sent: the connection failed, the stream is held, or we were refused. */
  readonly stopped: string | undefined
  readonly isOutOfTime: boolean
  /** Why the first job without an outcome of its own was not sent. */
  readonly unheard: string | undefined
}

interface Taken<Claim> {
  readonly claim: Claim
  readonly lease: Lease<Claim>
  /** Its place within the pace. */
  readonly place?: number | undefined
}

const UNTRIED: Delivery = { kind: 'untried' }

export function createRun<Claim extends object, Prepared extends Ready>(
  { clock, timer, random }: Host,
  source: Source<Claim, Prepared>,
  { limit = Number.POSITIVE_INFINITY, forMs, signal }: RunOptions,
) {
  const { stream, lines, pace } = source
  // With a pace, each claim gets its place first, and none waits for a line.
  const slots = stream.isBulk && !pace ? SLOTS : lines
  // If more outcomes waited for a commit, fewer slots would be left than there are lines, and lines would idle.
  const full = stream.isBulk ? SLOTS - lines : 1
  const marker = createMarker<Claim, Attempted<Claim, Prepared>>(source, timer, full)
  const refusals = createRefusals()
  const inLine = createSemaphore(lines)
  const oneByOne = createSemaphore(1)
  /** Aborted when the run stops sending, whatever for. */
  const halt = new AbortController()
  const halted = signal ? AbortSignal.any([signal, halt.signal]) : halt.signal
  // Every claim listens while it waits for its place.
  setMaxListeners(0, halted)
  const ended = Promise.withResolvers<void>()
  const ready: Taken<Claim>[] = []
  /** Each holds on to hundreds of messages, so those that ended are dropped. */
  const leases = new Set<Lease<Claim>>()
  const handedOver = new WeakSet<Claim>()
  /** Claims that a fault kept from being handed over. */
  const left: Taken<Claim>[] = []
  const undecided: Promise<unknown>[] = []
  let room = limit
  let size = BATCH
  let busy = 0
  let sent = 0
  let isDry = false
  let isTaking = false
  let hasTaken = false
  let isOver = false
  let isOutOfTime = false
  let hasEnded = false
  /** Since the provider limited our rate: when it may be asked again, and how many that came alone it has refused in a row, or taken. */
  let limited: { readonly until: number; readonly inARow: number; readonly taken: number } | undefined
  /** How many messages it must take one by one before they go out together again; doubled each time it has. */
  let enough = 25
  let why: string | undefined
  let unheard: string | undefined
  /** The first one. One that only claiming met lets earlier claims be sent. */
  let fault: { readonly error: unknown } | undefined
  let claimFault: typeof fault

  const verdicts = new WeakMap<Claim, ReturnType<typeof refusals.refused>>()

  const isStopped = () => isOver || refusals.stop !== undefined || halted.aborted
  const mayTake = () => room > 0 && !isDry && !claimFault && !isStopped()
  const failed = (error: unknown) => {
    fault ??= { error }
    isOver = true
    if (stream.isBulk) halt.abort()
  }
  const unused = ({ place }: Taken<Claim>) => {
    if (place !== undefined) pace?.giveBack([place])
  }

  function leaseOn(claims: number, since: number): Lease<Claim> {
    const keep = (claims: readonly Claim[]) => source.keep(claims, LEASE_MS)
    const onEnded = () => {
      lease.cancel()
      leases.delete(lease)
    }
    const lease = createLease<Claim>({ timer, since, claims, onEnded, patienceMs: source.patienceMs, keep })
    leases.add(lease)
    return lease
  }

  async function take(): Promise<void> {
    let places: readonly number[] | undefined
    try {
      if (pace) {
        // A claim is made when its place has come and a slot is free for it, so that none grows old.
        const isDue = !hasTaken || !source.isDue || (await source.isDue())
        places = isDue ? await pace.places(Math.min(room, slots - busy), halted) : []
        hasTaken = true
      }
      const most = places?.length ?? Math.min(room, stream.isBulk ? size : slots - busy)
      size = Math.min(BATCH, size * 2)
      const now = clock.now()
      const since = timer.monotonic()
      const retries = Math.floor(most / RETRY_SHARE + random.fraction())
      const claims = most === 0 ? [] : await source.claim({ now, limit: most, retries, leaseMs: LEASE_MS })
      room -= claims.length
      isDry = claims.length === 0
      if (isDry) return
      const lease = leaseOn(claims.length, since)
      for (const [at, claim] of claims.entries()) ready.push({ claim, lease, place: places?.[at] })
      places = places?.slice(claims.length)
      // Claiming took so long that no attempt may begin. Claiming again would take as long.
      if (!lease.mayBegin())
        throw new PlatformError('store_unavailable', 'The store took too long to claim what is due.')
    } catch (error) {
      if (halted.aborted) return
      claimFault = { error }
    } finally {
      if (places) pace?.giveBack(places)
    }
  }

  /** Begins what there is room for, and takes more before the slots run dry. */
  function fill(): void {
    if (hasEnded) return
    while (busy < slots && !isStopped()) {
      const taken = ready.shift()
      if (taken === undefined) break
      busy += 1
      void work(taken)
        .catch((error: unknown) => {
          if (!handedOver.has(taken.claim)) left.push(taken)
          failed(error)
        })
        .finally(() => {
          if (!handedOver.has(taken.claim)) unused(taken)
          busy -= 1
          fill()
        })
    }
    const isLow = stream.isBulk && !pace ? ready.length < lines : ready.length === 0 && busy < slots
    if (!isTaking && isLow && mayTake()) {
      isTaking = true
      void take().finally(() => {
        isTaking = false
        fill()
      })
    }
    if (busy > 0 || isTaking) return
    hasEnded = true
    ended.resolve()
  }

  async function work(taken: Taken<Claim>): Promise<Delivery> {
    const prepared = await source.prepare(taken.claim)
    if ('kind' in prepared) {
      if (prepared.kind === 'untried') isOver = true
      return record(taken, prepared, undefined)
    }
    const delivery = await inLine(() => handOver(taken, prepared))
    if (!stream.isBulk || !isRefusal(delivery)) return record(taken, delivery, prepared)
    // The slot is free until the outcomes of others show whether this message or we were refused.
    undecided.push(refused(taken, prepared, delivery).catch(failed))
    return delivery
  }

  const handOver = (taken: Taken<Claim>, prepared: Prepared): Promise<Delivery> =>
    limited ? oneByOne(() => attempt(taken, prepared, true)) : attempt(taken, prepared, false)

  async function attempt(taken: Taken<Claim>, prepared: Prepared, isAlone: boolean): Promise<Delivery> {
    const { claim, lease, place = 0 } = taken
    if (isStopped()) return UNTRIED
    const before = limited
    const waitMs = Math.max(place, before?.until ?? 0) - timer.monotonic()
    if (waitMs > 0) await timer.sleep(waitMs, halted).catch(() => {})
    await lookAtHold()
    if (isStopped() || !lease.mayBegin())
      return { kind: 'untried', ...(why !== undefined && { reason: why }) }
    const unsent = await source.lastLook?.(claim)
    if (unsent) return unsent
    const number = refusals.handOver()
    lease.begin(claim)
    handedOver.add(claim)
    const { recorded, answered } = marker.begin(claim)
    // If the lease expires before the transport answers, the message may or may not have been delivered.
    const answer = prepared.handOver(lease.signal, recorded)
    const delivery = (await Promise.race([answer, lease.expired])) ?? LATE
    answered()
    // In the order of the answers, and while the slot is taken, so that the next message in line sees it: which
    // refusals are consecutive must not depend on what is recorded first.
    if (delivery.kind === 'sent') refusals.accepted(number)
    // Whoever swallows one after the other gets no more in this run: each may be repeated.
    if (delivery.kind === 'unknown') refusals.failed(delivery.reason)
    if (delivery.kind === 'not_configured' || delivery.kind === 'not_composed') {
      refusals.failed(delivery.reason)
      unheard ??= delivery.reason
    }
    if (isRefusal(delivery)) verdicts.set(claim, refusals.refused(delivery))
    if (delivery.kind === 'transient' && delivery.scope === 'connection') {
      const { retryAfterMs = 0 } = delivery
      const inARow = before ? before.inARow + 1 : 0
      if (retryAfterMs > 0 && retryAfterMs <= BRIEF_MS && inARow < MOST_LIMITS) {
        limited = { until: timer.monotonic() + retryAfterMs, inARow, taken: 0 }
        handedOver.delete(claim)
        return isAlone ? attempt(taken, prepared, true) : handOver(taken, prepared)
      }
      stop(delivery.reason)
    } else if (limited) {
      const alone = limited.taken + Number(isAlone && delivery.kind === 'sent')
      limited = alone < enough ? { ...limited, inARow: 0, taken: alone } : undefined
      if (!limited) enough *= 2
    }
    return delivery
  }

  const lookAtHold = async () => stop(await source.held?.())
  function stop(reason: string | undefined): void {
    why ??= reason
    isOver ||= reason !== undefined
  }

  async function refused(taken: Taken<Claim>, prepared: Prepared, delivery: Refusal): Promise<Delivery> {
    const { claim, lease } = taken
    const { reason } = delivery
    const unclear = unclearScope(delivery)
    // Record it before the lease ends, so that the next holder of the claim finds the refusal.
    const scope = await Promise.race([verdicts.get(claim) ?? unclear, lease.expired.then(() => unclear)])
    if (scope === 'message') return record(taken, { kind: 'permanent', hardBounce: false, reason }, prepared)
    unheard ??= reason
    return record(taken, { kind: 'again' }, prepared, delivery)
  }

  /** Records what became of a claim, and ends the claim only when the record is durable. */
  async function record(
    { claim, lease }: Taken<Claim>,
    delivery: Delivery,
    prepared: Prepared | undefined,
    answer = delivery,
  ): Promise<Delivery> {
    try {
      if (delivery.kind !== 'gone') {
        const now = clock.now()
        const made = recordOf(source.jobOf(claim), delivery, { now, fraction: random.fraction(), stream })
        const attempted = { claim, delivery, record: made, now, prepared }
        await marker.mark(attempted, lease.heldUntil())
        if (delivery.kind === 'sent') sent += 1
        source.tell(attempted, answer)
      }
      if (isAnswer(answer)) return delivery
      // A claim that came to nothing makes room for another.
      room += 1
      isDry = false
      // The provider is slow: claim no more than it takes before the claims grow old.
      if (delivery.kind === 'untried') size = lines
      if (delivery.kind === 'untried' && !stream.isBulk) isOver = true
      return delivery
    } finally {
      lease.end(claim)
    }
  }

  return {
    /** Something became due: looks again, even after the connection failed. */
    nudge() {
      isDry = false
      if (!stream.isBulk) isOver = false
      fill()
    },
    async one(claim: Claim, since: number): Promise<Delivery> {
      const lease = leaseOn(1, since)
      try {
        return await work({ claim, lease })
      } finally {
        lease.cancel()
      }
    },
    async all(): Promise<Ran> {
      await lookAtHold()
      const endOfTime = () => {
        isOutOfTime = true
        halt.abort()
      }
      if (forMs !== undefined) timer.sleep(forMs, halted).then(endOfTime, () => {})
      fill()
      await ended.promise
      halt.abort()
      refusals.end()
      for (const taken of ready) unused(taken)
      left.push(...ready)
      const released = await Promise.allSettled([
        ...undecided,
        ...left.map((taken) => record(taken, UNTRIED, undefined)),
      ])
      for (const lease of leases) lease.cancel()
      for (const one of released) if (one.status === 'rejected') fault ??= { error: one.reason }
      const met = fault ?? claimFault
      if (met) throw met.error
      return { sent, stopped: why ?? refusals.stop, isOutOfTime, unheard }
    },
  }
}
