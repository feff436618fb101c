import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/** A statement that does not wait for a lock has mostly answered by then. */
const USUAL_MS = 8

/** One of two programs whose statements take turns. */
interface Actor {
  /** Sends the statement that waits for its turn; undefined while none does. */
  next: (() => void) | undefined
  done: boolean
  /** Called when a statement waits for its turn, or the program has ended. */
  stopped: () => void
}

const actors = new AsyncLocalStorage<Actor>()
/** A program of which one statement fails: how many it has sent, and which one is not sent. */
const failures = new AsyncLocalStorage<{ sent: number; readonly fails: number }>()
// The driver's client is the only place that every statement of a program passes.
const query = pg.Client.prototype.query as (this: pg.Client, ...given: unknown[]) => unknown
pg.Client.prototype.query = function turnByTurn(this: pg.Client, ...given: unknown[]): unknown {
  const actor = actors.getStore()
  const failing = failures.getStore()
  if (failing) {
    failing.sent += 1
    // As a server that ends a statement for its time: the connection is kept.
    if (failing.sent === failing.fails)
      return Promise.reject(Object.assign(new Error('the statement took too long'), { code: '57014' }))
  }
  if (actor === undefined) return query.apply(this, given)
  return new Promise<void>((send) => {
    actor.next = send
    actor.stopped()
  }).then(() => query.apply(this, given))
} as typeof pg.Client.prototype.query

/**
 * Runs two programs on one PostgreSQL, statement by statement in the order of `turns` (true: the first one's turn), and
 * gives both results. A program whose statement waits for a lock loses its turns until it has got it.
 */
export async function interleaved(
  programs: readonly [() => Promise<unknown>, () => Promise<unknown>],
  turns: Iterable<boolean>,
  /** Whether a statement of this database waits for a lock. */
  isBlocked: () => Promise<boolean>,
): Promise<readonly unknown[]> {
  const started = programs.map((program) => {
    const actor: Actor = { next: undefined, done: false, stopped: () => {} }
    const first = stop(actor)
    const result = actors.run(actor, program).finally(() => {
      actor.done = true
      actor.stopped()
    })
    // Both are asked for their results at the end.
    result.catch(() => {})
    return { actor, result, at: first }
  })
  const order = turns[Symbol.iterator]()
  for (;;) {
    await Promise.race([...started.map(({ at }) => at), ...started.map(({ at }) => at)])
    const waiting = started.filter(({ actor }) => actor.next !== undefined)
    if (waiting.length === 0) {
      if (started.every(({ actor }) => actor.done)) break
      // The other one has committed: who waited for its lock goes on by itself.
      await Promise.all(started.filter(({ actor }) => !actor.done).map(({ at }) => at))
      continue
    }
    const chosen = order.next().value === true ? 0 : 1
    const one = waiting.find((ready) => ready === started[chosen]) ?? waiting[0]
    if (one === undefined) break
    one.at = stop(one.actor)
    const send = one.actor.next
    one.actor.next = undefined
    send?.()
    // Hardly any statement waits for a lock, and to ask costs more than most statements.
    const moved = one.at.then(() => true)
    while (!(await Promise.race([moved, sleep(USUAL_MS, false)])) && !(await isBlocked()));
  }
  return Promise.all(started.map(({ result }) => result))
}

const stop = (actor: Actor) =>
  new Promise<void>((resolve) => {
    actor.stopped = resolve
  })

/** Runs a program, and counts its statements. */
export async function counted<T>(program: () => Promise<T>): Promise<{ answer: T; statements: number }> {
  const count = { sent: 0, fails: 0 }
  return { answer: await failures.run(count, program), statements: count.sent }
}

/** Runs a program whose statement of this number, from 1 on, fails. */
export async function failingAt(fails: number, program: () => Promise<unknown>): Promise<void> {
  await failures.run({ sent: 0, fails }, program).catch(() => {})
}
