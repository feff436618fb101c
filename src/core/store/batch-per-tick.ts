/** Questions of one turn of the event loop go to the store together: it is asked once, and not for each. */
export function batchPerTick<Q, A>(
  ask: (questions: readonly Q[]) => Promise<readonly A[]>,
): (question: Q) => Promise<A> {
  let questions: Q[] = []
  let answers: Promise<readonly A[]> | undefined
  return async (question) => {
    const index = questions.push(question) - 1
    answers ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      const asked = questions
      questions = []
      answers = undefined
      return ask(asked)
    })
    const answer = (await answers)[index]
    if (answer === undefined) throw new TypeError('the store left a question unanswered')
    return answer
  }
}
