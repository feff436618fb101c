import type { Host } from '../host.ts'
import { type Held, heldReason } from '../mail/holds.ts'
import type { WaitUntilRecorded } from '../mail/transport.ts'
import { type Delivery, type Job, type JobRecord, recordOf } from './delivery.ts'
import { createLease, LATE, LEASE_MS, type Lease } from './lease.ts'
import { createMarker } from './marker.ts'
import type { Stream } from './streams.ts'

/** An attempt that is ready to be handed over; or what became of the job without one. */
export type Prepared =
  | Delivery
  | { readonly handOver: (signal: AbortSignal, recorded: WaitUntilRecorded) => Promise<Delivery> }

/** What one attempt leaves behind. */
export interface Attempted<T> {
  readonly claim: T
  readonly delivery: Delivery
  readonly record: JobRecord
  readonly now: number
}

/** What every lane of a process shares. */
export interface LaneHost extends Host {
  /** Whether an operator holds the stream; asked before each attempt. */
  readonly held?: Held | undefined
}

export interface LaneOptions<T> {
  readonly stream: Stream
  /** How many attempts go on at once. */
  readonly lines: number
  /** The longest that one attempt may take. */
  readonly patienceMs: number
  readonly jobOf: (claimed: T) => Job & { readonly stream?: Stream }
  readonly claim: (input: {
    readonly now: number
    readonly limit: number
    readonly leaseMs: number
  }) => Promise<readonly T[]>
  readonly keep: (claimed: readonly T[]) => Promise<void>
  readonly prepare: (claimed: T) => Promise<Prepared>
  readonly settle: (attempted: readonly Attempted<T>[]) => Promise<void>
  /** Logs what became of an attempt, once that is recorded. */
  readonly tell: (attempted: Attempted<T>) => void
  /** Ends a pass after the attempts in hand. */
  readonly signal?: AbortSignal | undefined
}

/** What leaves of one stream to one place: no other lane waits for it. */
export interface Lane<T> {
  /**
   * Sends what is due, whichever process stored it, and gives how many were sent. Calls during a pass join it, and what
   * became due meanwhile is sent in it. A connection that fails ends a pass.
   */
  wake(): Promise<number>
  /** Sends one that this process has stored and holds since that moment of the monotonic clock. */
  deliver(claimed: T, since: number): Promise<Delivery>
}

/** Claims, attempts and records the jobs of one stream; nothing else sends messages. */
export function createLane<T>(
  { clock, timer, random, held = async () => undefined }: LaneHost,
  { stream, lines, patienceMs, jobOf, claim, keep, prepare, settle, tell, signal }: LaneOptions<T>,
): Lane<T> {
  // An outcome is committed at once, and again until its lease ends while the store cannot be written.
  const marker = createMarker<T, Attempted<T>>({ settle }, timer, 1)

  async function attempt(claimed: T, lease: Lease<T>): Promise<Delivery> {
    const hold = await held(stream.name)
    if (hold) return { kind: 'untried', reason: heldReason(hold) }
    const prepared = await prepare(claimed)
    if ('kind' in prepared) return prepared
    if (!lease.mayBegin()) return { kind: 'untried' }
    lease.begin(claimed)
    const { recorded, answered } = marker.begin(claimed)
    const delivery = (await Promise.race([prepared.handOver(lease.signal, recorded), lease.expired])) ?? LATE
    answered()
    return delivery
  }

  async function send(claimed: T, lease: Lease<T>): Promise<Delivery> {
    try {
      const delivery = await attempt(claimed, lease)
      if (delivery.kind === 'gone') return delivery
      const now = clock.now()
      const job = jobOf(claimed)
      const record = recordOf(job, delivery, {
        now,
        fraction: random.fraction(),
        stream: job.stream ?? stream,
      })
      const attempted = { claim: claimed, delivery, record, now }
      await marker.mark(attempted, lease.heldUntil())
      tell(attempted)
      return delivery
    } finally {
      lease.end(claimed)
    }
  }

  function leaseOn(claims: number, since: number): Lease<T> {
    const lease: Lease<T> = createLease({
      timer,
      since,
      claims,
      onEnded: () => lease.cancel(),
      patienceMs,
      keep,
    })
    return lease
  }

  let isNudged = false
  let nudge = () => {}
  async function pass(): Promise<number> {
    let sent = 0
    let isOver = false
    let fault: { readonly error: unknown } | undefined
    const failed = (error: unknown) => {
      fault ??= { error }
      isOver = true
    }
    const out = new Set<Promise<void>>()
    const start = (claimed: T, lease: Lease<T>) => {
      const ended = send(claimed, lease).then(
        (delivery) => {
          if (delivery.kind === 'sent') sent += 1
          if (delivery.kind === 'untried') isOver = true
          if (delivery.kind === 'transient' && delivery.scope === 'connection') isOver = true
        },
        (error: unknown) => failed(error),
      )
      const one = ended.finally(() => out.delete(one))
      out.add(one)
    }
    for (;;) {
      const nudged = new Promise<void>((resolve) => {
        nudge = resolve
      })
      // What came meanwhile is tried, whatever became of the one before it.
      if (isNudged) isOver = false
      isNudged = false
      const room = isOver || signal?.aborted ? 0 : lines - out.size
      try {
        if (room > 0 && !(await held(stream.name))) {
          const since = timer.monotonic()
          const claimed = await claim({ now: clock.now(), limit: room, leaseMs: LEASE_MS })
          const lease = claimed.length > 0 ? leaseOn(claimed.length, since) : undefined
          if (lease) for (const one of claimed) start(one, lease)
        }
      } catch (error) {
        failed(error)
      }
      if (out.size > 0) await Promise.race([...out, nudged])
      else if (!isNudged || signal?.aborted) {
        if (fault) throw fault.error
        return sent
      }
    }
  }
  let passing: Promise<number> | undefined
  return {
    wake() {
      isNudged = true
      nudge()
      passing ??= pass().finally(() => {
        passing = undefined
      })
      return passing
    },
    deliver: (claimed, since) => send(claimed, leaseOn(1, since)),
  }
}
