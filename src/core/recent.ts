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
