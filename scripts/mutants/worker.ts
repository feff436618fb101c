import { openTests } from './tests.ts'

/** What the runner asks of this process: open a room's tests, which of them reach a file, whether one fails. */
export type Ask =
  | { readonly kind: 'open'; readonly folders: readonly string[] }
  | { readonly kind: 'reaching'; readonly file: string }
  | {
      readonly kind: 'fail'
      readonly file: string
      readonly source: string
      readonly tests: readonly string[]
    }

let tests: Awaited<ReturnType<typeof openTests>> | undefined

async function answer(ask: Ask): Promise<unknown> {
  if (ask.kind === 'open') {
    tests = await openTests(ask.folders)
    return true
  }
  if (ask.kind === 'reaching') return tests?.reaching(ask.file)
  return await tests?.fail(ask, ask.tests)
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
