import { globSync, readFileSync } from 'node:fs'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'
import { hasBearer } from '../../src/core/access/identity.ts'
import { readUnsubscribeLink, unsubscribeBy } from '../../src/core/course/links.ts'
import { openFingerprints } from '../../src/core/fingerprints.ts'
import { rotatingSecret, secret } from '../../src/core/secret.ts'
import { odds } from '../support/odds.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'

test('no secret is compared by a comparison that stops at the first difference', () => {
  const faults: string[] = []
  for (const file of globSync('src/**/*.ts')) {
    const text = readFileSync(file, 'utf8')
    if (!text.includes('.reveal()')) continue
    const check = (
      node: { start: number; end: number },
      parts: readonly { start: number; end: number }[],
    ) => {
      if (parts.some((part) => /\.reveal\(\)/.test(text.slice(part.start, part.end))))
        faults.push(`${file}: ${text.slice(node.start, node.end)}`)
    }
    new Visitor({
      BinaryExpression(node) {
        if (/^[=!]==?$/.test(node.operator)) check(node, [node.left, node.right])
      },
      CallExpression(node) {
        const callee = text.slice(node.callee.start, node.callee.end)
        if (/\.(?:startsWith|includes|indexOf|localeCompare|has)$/.test(callee)) check(node, node.arguments)
      },
    }).visit(parseSync(file, text).program)
  }
  expect(faults).toEqual([])
})

const bearer = (value: string) =>
  new Request('http://x.example', { headers: { Authorization: `Bearer ${value}` } })

// Other load can spoil one measurement; a comparison that stops early, or a slower fingerprint, fails each attempt.
test.each([
  ['almost right', `${SECRET.slice(0, -1)}x`],
  ['wrong from the start', `x${SECRET.slice(1)}`],
])('checking a bearer that is %s takes as long as any other', { retry: 3 }, (_, given) => {
  const configured = rotatingSecret(SECRET)
  const other = bearer('z'.repeat(SECRET.length))
  const asked = bearer(given)
  expect(hasBearer(asked, configured)).toBe(false)
  const longer = odds({ a: () => hasBearer(asked, configured), b: () => hasBearer(other, configured) })
  expect(longer).toBeGreaterThan(0.3)
  expect(longer).toBeLessThan(0.7)
})

test('a fingerprint takes as long for a secret of one character as for one of 64', { retry: 3 }, async () => {
  const fingerprint = await openFingerprints(SECRET, '00'.repeat(16))
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < 14; round += 1) {
    const which = round % 2 === 0 ? 0 : 1
    const began = performance.now()
    await fingerprint({ name: 'KEY', secret: true }, 'x'.repeat(which === 0 ? 1 : 64))
    times[which].push(performance.now() - began)
  }
  const [short, long] = [Math.min(...times[0]), Math.min(...times[1])]
  expect(long / short).toBeGreaterThan(0.6)
  expect(long / short).toBeLessThan(1.6)
})

test('refuses an almost correct unsubscribe token like any other, whatever its length', () => {
  const key = 'k'.repeat(32)
  const named = { id: 'abcdefghij', enrolment: 3 }
  const { unsubscribeUrl } = unsubscribeBy('http://x.example', [secret(key)], named)
  const link = new URL(unsubscribeUrl).searchParams
  const [s, t] = [link.get('s') ?? '', link.get('t') ?? '']
  expect(readUnsubscribeLink(key, { s, t })).toEqual(named)
  for (const wrong of [
    '',
    t.slice(0, -1),
    `${t}x`,
    `${t.slice(0, -1)}${t.endsWith('A') ? 'B' : 'A'}`,
    t.toLowerCase(),
    `é${t}`,
    '\0',
  ])
    expect(readUnsubscribeLink(key, { s, t: wrong })).toBeUndefined()
  expect(readUnsubscribeLink(key, { s: 'abcdefghij.4', t })).toBeUndefined()
})
