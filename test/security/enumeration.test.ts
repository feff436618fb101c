import { statSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSqlite } from '../../src/core/store/sqlite/open.ts'
import { emptyFolder } from '../support/folder.ts'
import { longerOf } from '../support/odds.ts'
import { opened } from '../support/opened.ts'
import { testTransport } from '../support/test-transport.ts'

async function open() {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  const store = await openSqlite(file)
  onTestFinished(() => store.close())
  const tokens: string[] = []
  const it = opened({
    env: { EMAIL_LINK_SECRET: 'a-link-secret-of-thirty-two-bytes' },
    store,
    mailer: testTransport(async (message) => {
      tokens.push(/token=([\w-]+)/.exec(message.text)?.[1] ?? '')
      return { kind: 'sent', id: message.key }
    }),
  })
  let client = 0
  const nobody = () => {
    client += 1
    return `10.0.${client >> 8}.${client & 255}`
  }
  const confirm = (token = '') => it.page(`/api/email/confirm?token=${token}`, { from: nobody() })
  const subscribe = (email: string) => it.post('/api/email/subscribe', { email }, {}, nobody())
  return { file, store, tokens, confirm, subscribe }
}

/** An address of each kind that a stranger might ask about. */
async function known(it: Awaited<ReturnType<typeof open>>) {
  await it.subscribe('recent@example.com')
  await it.subscribe('confirmed@example.com')
  await expect.poll(() => it.tokens.length).toBe(2)
  await it.confirm(it.tokens[1])
  return ['recent@example.com', 'confirmed@example.com']
}

test('subscribing answers a known, a confirmed and an unknown address alike, but for the request id', async () => {
  const it = await open()
  const addresses = [...(await known(it)), 'new@example.com']
  const answers = await Promise.all(
    addresses.map(async (address) => {
      const response = await it.subscribe(address)
      const headers = [...response.headers].filter(([name]) => name !== 'x-request-id')
      return JSON.stringify([response.status, headers, await response.text()])
    }),
  )
  expect(new Set(answers).size).toBe(1)
})

test('subscribing writes durably for every address, the erased included, and keeps nothing of those', async () => {
  const it = await open()
  const addresses = await known(it)
  const hashes: string[] = []
  const { requestConfirmation } = it.store.course
  const size = () => statSync(`${it.file}-wal`).size
  for (const address of [...addresses, 'new@example.com']) {
    const before = size()
    await it.subscribe(address)
    expect(size(), address).toBeGreaterThan(before)
  }
  // Erased: recognised by a keyed hash, which is learnt here from what the platform asks its store.
  it.store.course.requestConfirmation = (asked) => {
    hashes.push(...(asked.erasureHashes ?? []))
    return requestConfirmation(asked)
  }
  await it.subscribe('erased@example.com')
  const now = Date.now()
  await it.store.course.erase({
    identity: 'erased@example.com',
    spellings: ['erased@example.com'],
    recipients: [],
    suppressionHash: hashes[0] ?? '',
    now,
  })
  const before = size()
  expect((await it.subscribe('erased@example.com')).status).toBe(202)
  expect(size()).toBeGreaterThan(before)
  expect(await it.store.course.find('erased@example.com')).toBeUndefined()
})

test('the time of an answer does not tell whether the address was known', async () => {
  const it = await open()
  const [recent = '', confirmed = ''] = await known(it)
  const times: Record<string, number[]> = { recent: [], confirmed: [], unknown: [] }
  const measure = async (kind: string, address: string) => {
    const began = performance.now()
    await it.subscribe(address)
    times[kind]?.push(performance.now() - began)
    // Work that goes on after the response is not part of its time.
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (let round = 0; round < 60; round += 1) {
    const kinds = [
      () => measure('recent', recent),
      () => measure('unknown', `new-${round}@example.com`),
      () => measure('confirmed', confirmed),
    ]
    // Each kind comes first, second and last equally often.
    for (let n = 0; n < 3; n += 1) await kinds[(n + round) % 3]?.()
  }
  for (const kind of ['recent', 'confirmed']) {
    const odds = longerOf(times[kind] ?? [], times.unknown ?? [])
    expect(odds, kind).toBeGreaterThan(0.25)
    expect(odds, kind).toBeLessThan(0.75)
  }
})
