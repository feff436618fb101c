import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { recordEnvelopes } from '../../support/envelopes.ts'

const program = fileURLToPath(new URL('./program.ts', import.meta.url))

test('reports of the real SDK are scrubbed, stamped and sampled', async () => {
  const { dsn, envelopes, raw } = await recordEnvelopes()
  const { stderr } = await execa(process.execPath, [program, dsn])
  expect(stderr).toBe('')
  const items = envelopes.flatMap((envelope) => envelope.items)
  const types = new Set(items.map(({ header }) => header.type))
  expect([...types].sort()).toEqual(['event', 'transaction'])

  const payloads = items.map(({ payload }) => payload)
  const text = JSON.stringify(payloads)
  for (const part of [
    'could not load https://www.example.com/play',
    'the visitor [address] opened',
    '"lesson":3',
    'user-17',
  ])
    expect(text).toContain(part)
  const transactions = payloads.filter(({ type }) => type === 'transaction')
  expect(transactions.length).toBeGreaterThan(0)
  expect(transactions.flatMap(({ spans }) => spans as unknown[]).length).toBeGreaterThan(0)
  expect(payloads.flatMap(({ breadcrumbs }) => (breadcrumbs as unknown[]) ?? []).length).toBeGreaterThan(0)
  expect(text).not.toContain('after the end')

  // The canary stands in every query string, cookie, body, address, secret and name that the program had.
  const leaks = raw.flatMap((sent) => [...sent.matchAll(/.{60}canary.{20}/g)].map(([leak]) => leak))
  expect(leaks).toEqual([])
  expect(raw.join('\n')).not.toContain('canary')
  expect(raw.join('\n')).not.toMatch(/203\.0\.113\.77|2001:db8|[?&]c=/)

  for (const payload of payloads) {
    expect(payload.release).toBe('2026.11.21-abc1234')
    expect(payload.environment).toBe('staging')
    for (const absent of ['request', 'server_name', 'modules']) expect(payload).not.toHaveProperty(absent)
    expect(payload.user ?? {}).not.toHaveProperty('email')
  }
  const rates = new Set(
    envelopes.flatMap(({ headers }) => (headers.trace as { sample_rate?: string })?.sample_rate ?? []),
  )
  expect([...rates]).toEqual(['0.1'])
})
