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

/** Answers all questions of one turn of the event loop with one call. */
export function batchPerTick<Q, A>(
  ask: (questions: readonly Q[]) => Promise<readonly A[]>,
): (question: Q) => Promise<A> {
  let questions: Q[] = []
  const answers = perTick(() => {
    const asked = questions
    questions = []
    return ask(asked)
  })
  return async (question) => {
    const index = questions.push(question) - 1
    const answer = (await answers())[index]
    if (answer === undefined) throw new TypeError('the store left a question unanswered')
    return answer
  }
}
