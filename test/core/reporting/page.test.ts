import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { recordEnvelopes } from '../../support/envelopes.ts'

const program = fileURLToPath(new URL('./page.ts', import.meta.url))

async function visit(objection?: string) {
  const { dsn, envelopes } = await recordEnvelopes()
  const { stdout, stderr } = await execa(process.execPath, [program, dsn, ...(objection ? [objection] : [])])
  const events = envelopes.flatMap(({ items }) => items.map(({ payload }) => payload))
  const said = events.map(({ exception }) => (exception as { values: { value: string }[] }).values[0]?.value)
  for (const event of events)
    expect(event).toMatchObject({ release: '2026.11.21-abc', environment: 'staging' })
  return { loaded: stdout, said, observed: stderr }
}

test('an objection stops what a page reports and what the SDK itself catches, until it is taken back', async () => {
  const { loaded, said, observed } = await visit()
  expect(loaded).toMatch(/browser-errortrack\.js$/)
  expect(said).toEqual(['at first', 'after it was taken back', 'after it was taken back'])
  // Neither clicks and keys are recorded, nor do requests carry a trace.
  expect(observed).toContain('visibilitychange')
  expect(observed).not.toMatch(/click|key|trace|baggage/)
})

test.each(['gpc', 'opt-out key'])('with an objection by %s the SDK is not even loaded', async (objection) => {
  expect(await visit(objection)).toMatchObject({ loaded: '', said: [] })
})

test('a page that starts without consent reports from the moment that it is given', async () => {
  const { loaded, said } = await visit('until consent')
  expect(loaded).toMatch(/browser-errortrack\.js$/)
  expect(said).toEqual(['after consent'])
})
