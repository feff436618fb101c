import { setMaxListeners } from 'node:events'
import { createSemaphore } from '../calls.ts'
import { MINUTE_MS } from '../durations.ts'
import type { Host, Timer } from '../host.ts'
import { LATE } from '../lease.ts'
import { createClaims, type Taken } from './claims.ts'
import { createMarker } from './marker.ts'
import { createRefusals, isRefusal, type Refusal, unclearScope } from './refusals.ts'
import { type Delivery, isAnswer, isOutcome, recordOf, ruleOf } from './retries.ts'
import type { Attempted, Ready, Source } from './source.ts'

/** More claims in work than messages out, so that many outcomes can share one durable commit. */
const SLOTS = 250
/** In minutes: longer than any transport waits for an answer, so that the looks of a run whose process was killed end too. */
const MOST_LOOKS = 20
/** How long a run goes on after its time is over, if all that is due is in hand. */
const HANGING_MS = 10 * MINUTE_MS

export interface RunOptions {
  readonly limit?: number
  /** The time after which it claims nothing more: out of time at once, or in `HANGING_MS` if all that is due is in hand. */
  readonly forMs?: number | undefined
  /** Ends a run after the messages that are out. */
  readonly signal?: AbortSignal | undefined
}

const UNTRIED: Delivery = { kind: 'untried' }
const OUT_OF_TIME = new Error('the time of the run is over')

/** One run over the jobs of a source: what `claims` has ready is attempted in slots, and recorded. */
export function createRun<Claim extends object, Prepared extends Ready>(
  host: Host,
  source: Source<Claim, Prepared>,
  { limit = Number.POSITIVE_INFINITY, forMs, signal }: RunOptions,
) {
  const { clock, timer, random } = host
  const { stream, lines, pace } = source
  // With a pace, each claim gets its place first, and none waits for a line.
  const slots = stream.isBulk && !pace ? SLOTS : lines
  /** Aborted when the run stops sending, whatever for. */
  const halt = new AbortController()
  const halted = signal ? AbortSignal.any([signal, halt.signal]) : halt.signal
  // Every claim listens while it waits for its place.
  setMaxListeners(0, halted)
  const claims = createClaims(host, source, { room: limit, halted, freeSlots: () => slots - busy })
  // If more outcomes waited for a commit, fewer slots would be left than there are lines, and lines would idle.
  const full = stream.isBulk ? SLOTS - lines : 1
  const marker = createMarker<Claim, Attempted<Claim, Prepared>>(source, timer, full)
  const refusals = createRefusals()
  const rate = createRateLimit(timer)
  const inLine = createSemaphore(lines)
  const handedOver = new WeakSet<Claim>()
  const verdicts = new WeakMap<Claim, ReturnType<typeof refusals.refused>>()
  const undecided: Promise<unknown>[] = []
  /** Claims that a fault kept from being handed over. */
  const left: Taken<Claim>[] = []
  const ended = Promise.withResolvers<void>()
  let hasEnded = false
  let busy = 0
  let claiming: Promise<void> | undefined
  let isOver = false
  let why: string | undefined
  let sent = 0
  let unheard: string | undefined
  let fault: { readonly error: unknown } | undefined

  const isStopped = () => isOver || refusals.stop !== undefined || halted.aborted
  function stop(reason: string | undefined): void {
    why ??= reason
    isOver ||= reason !== undefined
  }
  const lookAtHold = async () => stop(await source.held?.())
  const failed = (error: unknown) => {
    fault ??= { error }
    isOver = true
    if (stream.isBulk) halt.abort()
  }

  /** Begins what there is room for, and claims more before the slots run dry. */
  function fill(): void {
    if (hasEnded) return
    while (busy < slots && !isStopped()) {
      const taken = claims.ready.shift()
      if (taken === undefined) break
      busy += 1
      void occupy(taken)
    }
    if (!isStopped())
      claiming ??= claims.refill()?.finally(() => {
        claiming = undefined
        fill()
      })
    if (busy > 0 || claiming) return
    hasEnded = true
    ended.resolve()
  }

  /** Works on a claim in a slot, and gives the slot to the next. */
  async function occupy(taken: Taken<Claim>): Promise<void> {
    try {
      await work(taken)
    } catch (error) {
      if (!handedOver.has(taken.claim)) left.push(taken)
      failed(error)
    }
    if (!handedOver.has(taken.claim)) claims.giveBack(taken)
    busy -= 1
    fill()
  }

  async function work(taken: Taken<Claim>): Promise<Delivery> {
    const prepared = await source.prepare(taken.claim)
    if ('kind' in prepared) {
      if (prepared.kind === 'untried') isOver = true
      return record(taken, prepared, undefined)
    }
    const delivery = await inLine(() => inTurn(taken, prepared))
    if (!stream.isBulk || !isRefusal(delivery)) return record(taken, delivery, prepared)
    // The slot is free until the outcomes of others show whether this message or we were refused.
    undecided.push(refused(taken, prepared, delivery).catch(failed))
    return delivery
  }

  const inTurn = (taken: Taken<Claim>, prepared: Prepared): Promise<Delivery> =>
    rate.inTurn((isAlone) => attempt(taken, prepared, isAlone))

  async function attempt(taken: Taken<Claim>, prepared: Prepared, isAlone: boolean): Promise<Delivery> {
    const { claim, lease } = taken
    const before = rate.limit()
    const unsent = (await waitOut(taken, before?.until)) ?? (await source.lastLook?.(claim))
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
    if (delivery.kind === 'transient' && ruleOf(delivery).run === 'ends') {
      if (!rate.isBrief(before, delivery.retryAfterMs)) {
        stop(delivery.reason)
        return delivery
      }
      handedOver.delete(claim)
      return isAlone ? attempt(taken, prepared, true) : inTurn(taken, prepared)
    }
    rate.answered(isAlone && delivery.kind === 'sent')
    if (delivery.kind === 'sent') refusals.accepted(number)
    else if (isRefusal(delivery)) verdicts.set(claim, refusals.refused(delivery))
    // Whoever swallows one after the other gets no more in this run: each may be repeated.
    else if (ruleOf(delivery).run === 'counted') refusals.failed(delivery.reason)
    if (!isOutcome(delivery)) unheard ??= delivery.reason
    return delivery
  }

  /** Waits until a message may be handed over; `untried` if that is not to be. */
  async function waitOut({ lease, place = 0 }: Taken<Claim>, limitedUntil = 0) {
    if (isStopped()) return UNTRIED
    const waitMs = Math.max(place, limitedUntil) - timer.monotonic()
    if (waitMs > 0) await timer.sleep(waitMs, halted).catch(() => {})
    await lookAtHold()
    if (!isStopped() && lease.mayBegin()) return undefined
    return why === undefined ? UNTRIED : { ...UNTRIED, reason: why }
  }

  async function refused(taken: Taken<Claim>, prepared: Prepared, delivery: Refusal): Promise<Delivery> {
    const { claim, lease } = taken
    const { reason } = delivery
    const unclear = unclearScope(delivery)
    // Record it before the lease ends, so that the next holder of the claim finds the refusal.
    const scope = await Promise.race([verdicts.get(claim) ?? unclear, lease.expired.then(() => unclear)])
    if (scope === 'one' || (scope === 'unclear' && source.isRefusedAlone?.(claim, reason)))
      return record(taken, { kind: 'permanent', hardBounce: false, reason }, prepared)
    unheard ??= reason
    // An unclear one is on record, so that somebody hears of it.
    return record(taken, scope === 'unclear' ? delivery : { kind: 'again' }, prepared, delivery)
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
      const isUntried = delivery.kind === 'untried'
      claims.cameToNothing(isUntried)
      if (isUntried && !stream.isBulk) isOver = true
      return delivery
    } finally {
      lease.end(claim)
    }
  }

  /** Claims what became due while a message waits for its answer. */
  async function lookEachMinute(): Promise<void> {
    for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
      await timer.sleep(MINUTE_MS, halted)
      claims.nudge()
      fill()
    }
  }

  async function endAfter(ms: number): Promise<void> {
    await timer.sleep(ms, halted)
    if (claims.isDry()) await timer.sleep(HANGING_MS, halted)
    halt.abort(OUT_OF_TIME)
  }

  return {
    /** Something became due: looks again, even after the connection failed. */
    nudge() {
      claims.nudge()
      if (!stream.isBulk) isOver = false
      fill()
    },
    async one(claim: Claim, since: number): Promise<Delivery> {
      const lease = claims.hold(1, since)
      return work({ claim, lease }).finally(lease.cancel)
    },
    /**
     * `stopped`: why it stopped before all was sent: the connection failed, the stream is held, or we were refused.
     * `unheard`: why the first job without an outcome of its own was not sent.
     */
    async all() {
      await lookAtHold()
      // Both are rejected when the run ends before them.
      if (stream.isBulk) lookEachMinute().catch(() => {})
      if (forMs !== undefined) endAfter(forMs).catch(() => {})
      fill()
      await ended.promise
      halt.abort()
      refusals.end()
      for (const taken of claims.ready) claims.giveBack(taken)
      left.push(...claims.ready)
      const released = await Promise.allSettled([
        ...undecided,
        ...left.map((taken) => record(taken, UNTRIED, undefined)),
      ])
      for (const lease of claims.leases) lease.cancel()
      for (const one of released) if (one.status === 'rejected') fault ??= { error: one.reason }
      const met = fault ?? claims.fault()
      if (met) throw met.error
      return { sent, stopped: why ?? refusals.stop, isOutOfTime: halt.signal.reason === OUT_OF_TIME, unheard }
    },
  }
}

/** A provider that limits our rate for no longer is waited for, and gets one message after the other for a while. */
const BRIEF_MS = 10_000
const MOST_LIMITS = 5

/** A run's messages while the provider limits our rate: one at a time, until it has taken enough of them. */
export function createRateLimit(timer: Timer) {
  const oneByOne = createSemaphore(1)
  /** When the provider may be asked again, and how many that came alone it has refused in a row, or taken. */
  let limit: { readonly until: number; readonly inARow: number; readonly taken: number } | undefined
  /** How many messages it has to take one at a time; twice as many after each further limit. */
  let enough = 25
  return {
    limit: () => limit,
    inTurn: <T>(attempt: (isAlone: boolean) => Promise<T>): Promise<T> =>
      limit ? oneByOne(() => attempt(true)) : attempt(false),
    /** Whether a limit is brief enough to wait for its end. `before`: the one that its message was sent under. */
    isBrief(before: typeof limit, retryAfterMs = 0): boolean {
      const inARow = before ? before.inARow + 1 : 0
      const isBrief = retryAfterMs > 0 && retryAfterMs <= BRIEF_MS && inARow < MOST_LIMITS
      if (isBrief) limit = { until: timer.monotonic() + retryAfterMs, inARow, taken: 0 }
      return isBrief
    },
    /** Call it for each answer that is no limit. */
    answered(isTakenAlone: boolean) {
      if (!limit) return
      const taken = limit.taken + Number(isTakenAlone)
      limit = taken < enough ? { ...limit, inARow: 0, taken } : undefined
      if (!limit) enough *= 2
    },
  }
}
