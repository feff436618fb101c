import { expect, test } from 'vitest'
import { type Address, addressesOf, sharedLookup } from '../../../src/core/network/connect.ts'

const v4 = (n: number): Address => ({ address: `192.0.2.${n}`, family: 4 })
const v6 = (n: number): Address => ({ address: `2001:db8::${n}`, family: 6 })

test.each([
  [
    [v6(1), v6(2), v4(1), v4(2)],
    [v6(1), v4(1), v6(2), v4(2)],
  ],
  [
    [v4(1), v6(1), v6(2), v6(3)],
    [v4(1), v6(1), v6(2), v6(3)],
  ],
  [
    [v4(1), v4(2), v4(3), v6(1)],
    [v4(1), v6(1), v4(2), v4(3)],
  ],
  [[v6(1)], [v6(1)]],
  [[], []],
])('%j is tried as %j: the families take turns, and none is left out', async (found, tried) => {
  expect(await addressesOf('www.example.com', async () => found)).toEqual(tried)
})

test.each(['127.0.0.1', '::1'])('%s needs no resolver', async (host) => {
  const resolver = () => Promise.reject(new Error('asked'))
  expect(await addressesOf(host, resolver)).toMatchObject([{ address: host }])
})

test('while a resolver hangs a host is looked up once, however many ask, and anew afterwards', async () => {
  const asked: string[] = []
  const finish: ((addresses: Address[]) => void)[] = []
  const lookup = sharedLookup((host) => {
    asked.push(host)
    return new Promise((resolve) => finish.push(resolve))
  })
  const all = Promise.all(Array.from({ length: 100 }, () => lookup('a.example')))
  void lookup('b.example')
  expect(asked).toEqual(['a.example', 'b.example'])
  finish[0]?.([v4(1)])
  expect(new Set((await all).flat())).toEqual(new Set([v4(1)]))
  void lookup('a.example')
  expect(asked).toHaveLength(3)
})

test('does not cache a failed lookup', async () => {
  let asked = 0
  const lookup = sharedLookup(async () => {
    asked += 1
    if (asked === 1) throw Object.assign(new Error('no'), { code: 'EAI_AGAIN' })
    return [v4(1)]
  })
  await expect(lookup('a.example')).rejects.toThrow()
  expect(await lookup('a.example')).toEqual([v4(1)])
})

test('the resolver of the system gives every address of a name, or its error', async () => {
  expect(await addressesOf('localhost')).toContainEqual(
    expect.objectContaining({ address: expect.stringMatching(/^(?:127\.|::1$)/) }),
  )
  // Longer than a name may be (RFC 1035 §2.3.4), so nobody is asked.
  await expect(addressesOf('x'.repeat(300))).rejects.toMatchObject({ code: expect.stringMatching(/^E/) })
})
