import { addAbortListener } from 'node:events'

/** What the engine takes from its surroundings; passed first, so that a test or a simulation can give its own. */
export interface Host {
  readonly clock: Clock
  readonly timer: Timer
  readonly random: Random
  readonly log: Log
}

/** Time as a parameter: the system's in production, a virtual one in tests, a fast one in the demo. */
export interface Clock {
  /** UTC milliseconds since the epoch. May step when the machine's clock is set. */
  now(): number
  /** Milliseconds from an arbitrary start that never step back: the one to measure durations with. */
  monotonic(): number
  /** Resolves after `ms` of this clock; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Waits for the network or the disk, in real time even when a program brings its own clock. */
export type Timer = Pick<Clock, 'sleep' | 'monotonic'>

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    const over = Promise.withResolvers<void>()
    const timer = setTimeout(over.resolve, ms)
    const listener = signal && addAbortListener(signal, () => over.reject(signal.reason))
    await over.promise.finally(() => {
      clearTimeout(timer)
      listener?.[Symbol.dispose]()
    })
  },
}

/** Randomness as a parameter, so that a simulation can replay a run from its seed. */
export interface Random {
  /** Cryptographically strong bytes in production. */
  bytes(length: number): Uint8Array
  /** Uniform in [0, 1): for jitter, never for secrets. */
  fraction(): number
}

export const systemRandom: Random = {
  // The global, because importing node:crypto costs every command a start that draws no bytes.
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
  fraction: () => Math.random(),
}

/** Random and URL-safe. Never with a hyphen first: a command would take it for an option. */
export function newId({ bytes }: Pick<Random, 'bytes'>, length: number): string {
  const id = Buffer.from(bytes(length)).toString('base64url')
  return id.startsWith('-') ? `0${id.slice(1)}` : id
}

/** The result of `work`; after `ms` that of `late`, while `work` goes on. */
export function within<T>(ms: number, work: Promise<T>, late: () => T): Promise<T> {
  const over = Promise.withResolvers<void>()
  const timer = setTimeout(over.resolve, ms)
  return Promise.race([work, over.promise.then(late)]).finally(() => clearTimeout(timer))
}

export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => addAbortListener(signal, () => resolve()))

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Only these value types: a log line is built from allow-listed fields, never from whole objects. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

/** Runbooks and alerts match on `event` (`course_day_sent`). No field carries a secret, a token or an address. */
export type Log = Readonly<Record<LogLevel, (event: string, message: string, fields?: LogFields) => void>>

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
