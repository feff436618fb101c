import { type OpenTests, openTests, type Planted, type Ran } from './tests.ts'

/** Requests from the runner to this process: open the tests in these places, then run some of them. */
export type Ask =
  | { readonly kind: 'open'; readonly places: readonly string[] }
  | { readonly kind: 'run'; readonly tests: readonly string[]; readonly planted?: Planted }

let tests: OpenTests | undefined

async function answer(ask: Ask): Promise<Ran | undefined> {
  if (ask.kind === 'run') return tests?.run(ask.tests, ask.planted)
  tests = await openTests(ask.places)
  return { took: {} }
}

process.on('message', async (ask: Ask) => {
  try {
    process.send?.({ answer: await answer(ask) })
  } catch (error) {
    process.send?.({ fault: error instanceof Error ? error.message : String(error) })
  }
})
process.on('disconnect', async () => {
  await tests?.close()
  process.exit(0)
})
