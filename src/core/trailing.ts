/**
 * Makes calls share runs: a caller never joins a run that began before its call, but all callers during one
 * run share the next. So every answer is fresh, and any number of simultaneous callers cause at most two
 * runs.
 */
export function trailing<T>(run: () => Promise<T>): () => Promise<T> {
  let current: Promise<unknown> | undefined
  let next: Promise<T> | undefined
  const begin = (): Promise<T> => {
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
    next = current.then(startNext, startNext)
    return next
  }
  function startNext(): Promise<T> {
    next = undefined
    return begin()
  }
}
