import type { Timer } from './host.ts'

/** Makes calls share runs: a caller never joins a run that began before its call, but all during one share the next. */
export function trailing<T>(run: () => Promise<T>): () => Promise<T> {
  let current: Promise<unknown> | undefined
  let next: Promise<T> | undefined
  const begin = (): Promise<T> => {
    next = undefined
    const started = run()
    current = started
    const done = () => {
      if (current === started) current = undefined
    }
    started.then(done, done)
    return started
  }
  return () => {
    if (next !== undefined) return next
    if (current === undefined) return begin()
    next = current.then(begin, begin)
    return next
  }
}

/** Lets all calls in one turn of the event loop share a run, which begins after the last of them. */
export function perTick<T>(run: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | undefined
  return () => {
    next ??= new Promise((resolve) => setImmediate(resolve)).then(() => {
      next = undefined
      return run()
    })
    return next
  }
}

const SPACE_MS = 1000

/** At most one run a second, and one at a time. A caller waits for the next, so no answer is older than the call. */
export function spaced<T>(run: () => Promise<T>, timer: Timer): () => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  let lastBegan = Number.NEGATIVE_INFINITY
  let next: Promise<T> | undefined
  return () => {
    next ??= last.then(async () => {
      const wait = lastBegan + SPACE_MS - timer.monotonic()
      if (wait > 0) await timer.sleep(wait)
      // Begin in a later tick, so that the requests of one tick share the run.
      await new Promise((resolve) => setImmediate(resolve))
      lastBegan = timer.monotonic()
      next = undefined
      const started = run()
      last = started.catch(() => {})
      return started
    })
    return next
  }
}

/** Answers all questions of one turn of the event loop with one call. */
export function batchPerTick<Q, A>(ask: (questions: readonly Q[]) => Promise<readonly A[]>) {
  let questions: Q[] = []
  const answers = perTick(() => {
    const asked = questions
    questions = []
    return ask(asked)
  })
  return async (question: Q): Promise<A> => {
    const index = questions.push(question) - 1
    const answer = (await answers())[index]
    if (answer === undefined) throw new TypeError('the store left a question unanswered')
    return answer
  }
}

/** Calls `read` at most once in `ms` and gives everybody its answer, which is never older than that. A fault is not kept. */
export function recent<T>(ms: number, now: () => number, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly answer: Promise<T> } | undefined
  return () => {
    const at = now()
    if (last === undefined || at - last.at >= ms) {
      const asked = { at, answer: read() }
      last = asked
      asked.answer.catch(() => {
        if (last === asked) last = undefined
      })
    }
    return last.answer
  }
}

/** Does one after the other, all of them whatever becomes of one; rejects with the first fault. */
export async function oneByOne(works: readonly (() => Promise<unknown>)[]): Promise<void> {
  const faults: unknown[] = []
  for (const work of works) await work().catch((fault: unknown) => faults.push(fault))
  if (faults.length > 0) throw faults[0]
}

/** Notes work that is under way, for a close that waits for it: what was not recorded would be done again. */
export function createUnderway() {
  const works = new Set<Promise<unknown>>()
  return {
    during<T>(work: Promise<T>): Promise<T> {
      works.add(work)
      return work.finally(() => works.delete(work))
    },
    ended: () => Promise.allSettled(works),
  }
}

/** Limits how many run at once; the others wait in line. */
export function createSemaphore(width: number): <T>(work: () => Promise<T>) => Promise<T> {
  const line: (() => void)[] = []
  let free = width
  return async (work) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => line.push(resolve))
    try {
      return await work()
    } finally {
      const next = line.shift()
      if (next) next()
      else free += 1
    }
  }
}

/** Whether a promise is fulfilled; never rejects. */
export const succeeds = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  )

/** Makes something of each object once: for the same object it gives the same. */
export function perObject<Of extends object, T>(make: (of: Of) => T): (of: Of) => T {
  const made = new WeakMap<Of, T>()
  return (of) => {
    const known = made.get(of) ?? make(of)
    made.set(of, known)
    return known
  }
}

/** A function made by `once`. Its `opened` gives what is open already, and opens nothing. */
export type Once<T> = (() => Promise<T>) & { readonly opened: () => Promise<T | undefined> }

/** Opens at the first call and shares the result; a failed attempt is forgotten, so that the next tries again. */
export function once<T>(open: () => Promise<T>): Once<T> {
  let opening: Promise<T> | undefined
  const get = () => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
  return Object.assign(get, { opened: async () => opening })
}
