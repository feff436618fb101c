import { expect, test } from 'vitest'
import { createScrub, scrubbing } from '../../../src/core/reporting/scrub.ts'

test('a secret of six characters is masked, a shorter one is a word like any other', () => {
  const { text } = createScrub({ secrets: ['sixsix', 'fivef'] })
  expect(text('sixsix fivef')).toBe('[secret] fivef')
})

test.each([[['secret-one', 'secret-one-longer']], [['secret-one-longer', 'secret-one']]])(
  'masks two secrets with a common prefix completely, in any order: %j',
  (secrets) => {
    const { text } = createScrub({ secrets })
    expect(text('a secret-one-longer, a secret-one')).toBe('a [secret], a [secret]')
    expect(text('secret-one-longersecret-one')).toBe('[secret][secret]')
  },
)

test('texts are scrubbed whatever their case', () => {
  const { text } = createScrub()
  for (const [given, expected] of [
    ['HTTPS://ADA:HUNTER2@WWW.EXAMPLE.COM/A', 'HTTPS://WWW.EXAMPLE.COM/A'],
    ['Postgres://ada:hunter2@db', 'Postgres://db'],
    ['HTTPS://WWW.EXAMPLE.COM/A?B=C#D', 'HTTPS://WWW.EXAMPLE.COM/A'],
    ['HTTPS://WWW.EXAMPLE.COM/#D', 'HTTPS://WWW.EXAMPLE.COM/'],
    ['TOKEN=abc', 'TOKEN=[secret]'],
    ['FE80::1 and 2001:DB8:0:0:1:2:3:4', '[address] and [address]'],
  ] as const)
    expect(text(given)).toBe(expected)
})

test.each([
  ['sk_live_abcdefgh', '[secret]'],
  ['whsec_abcdefghijkl', '[secret]'],
  ['ghp_abcdefghijkl', '[secret]'],
  ['xoxa-abcdefghijkl', '[secret]'],
  ['AKIAABCDEFGHIJKL', '[secret]'],
  ['re_K7dW2pXq_9sVnL4tYb6', '[secret]'],
  ['SG.pW4xabcdefghijk.d8Jn-abcdef and more', '[secret] and more'],
  ['representative re_short', 'representative re_short'],
  [
    'https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/abcDEF123456',
    'https://hooks.slack.com/services/[secret]',
  ],
  ['https://discord.com/api/webhooks/1234567890/abc-DEF_123', 'https://discord.com/api/webhooks/[secret]'],
  [
    'https://api.telegram.org/bot7213:AAE-x_1/sendMessage',
    'https://api.telegram.org/bot7213:[secret]/sendMessage',
  ],
  ['beat --token hunter4 --name job', 'beat --token [secret] --name job'],
  ['GET /services/list --tokens', 'GET /services/list --tokens'],
  ['skabcdefghijk', 'skabcdefghijk'],
  ['task_abcdefghijkl', 'task_abcdefghijkl'],
  ['eyJab.cd', '[secret]'],
  [
    'a -----BEGIN RSA PRIVATE KEY-----\nMIIB+/=\nab==\n-----END RSA PRIVATE KEY-----',
    'a [secret]-----END RSA PRIVATE KEY-----',
  ],
  ['eyJab.cd.ef', '[secret]'],
  ['Bearer\tabc/+~=', '[secret]'],
  ['password: "two words" next', 'password: [secret] next'],
  ["pwd='two words' next", 'pwd=[secret] next'],
  ['passwd=a;b', 'passwd=[secret];b'],
  ['session=4f3a of an upload', 'session=[secret] of an upload'],
  ['cookie: a=b, c', 'cookie: [secret], c'],
  ['ada＠example.com and ada%40example.com', '[address] and [address]'],
  ['127.0.0.1 127.0.0.11', '127.0.0.1 [address]'],
  ['/play#a=b "/play#c" (/play#d)', '/play "/play" (/play)'],
  ['why?x=1 what?', 'why what?'],
  ['GET /play?c=abc&x=1 took 5 ms', 'GET /play took 5 ms'],
  ['from /a?x=1 to /b?y=2', 'from /a to /b'],
  ['from /play#token to /a?b=c#d', 'from /play to /a'],
  ['really? yes: 12:34:56', 'really? yes: 12:34:56'],
  ['at run (file:///srv/app/dist/chunk.js:12:34)', 'at run (file:///srv/app/dist/chunk.js:12:34)'],
  ['Authorization: Bearer abc.def-123', 'Authorization: [secret]'],
  ['from ::1, fe80::1 and 10.0.0.1', 'from [address], [address] and [address]'],
  ['::1 ::2,fe80::3 1:2:3:4:5:6:7:8', '[address] [address],[address] [address]'],
  ['version 1.2.3 of npm:@scope/package at std::fade', 'version 1.2.3 of npm:@scope/package at std::fade'],
])('of %j remains %j', (given, expected) => {
  expect(createScrub().text(given)).toBe(expected)
})

test('scans the first 3,000 characters of a long text without spaces, besides those that it drops', () => {
  const long = `https://a.example/?${'q'.repeat(2500)} ${'x'.repeat(2000)}`
  const kept = 3000 - 'https://a.example/?'.length - 2500 - 1
  expect(createScrub().text(long)).toBe(`https://a.example/ ${'x'.repeat(kept)}…`)
})

test('every place of a secret is masked, also as a part of a word and as a key', () => {
  const scrub = createScrub({ secrets: ['hunter2.(x)'] })
  expect(scrub.text('xhunter2.(x)y hunter2.(x)')).toBe('x[secret]y [secret]')
  expect(scrub.value({ 'hunter2.(x)': { inner: ['hunter2.(x)'] } })).toEqual({
    '[secret]': { inner: ['[secret]'] },
  })
})

test('a text of 2,000 characters stays whole, a longer one is cut there', () => {
  const { text } = createScrub()
  expect(text('x'.repeat(2000))).toBe('x'.repeat(2000))
  expect(text('x'.repeat(2001))).toBe(`${'x'.repeat(2000)}…`)
  expect(text('x'.repeat(50_000))).toHaveLength(2001)
})

test.each([1990, 1999, 3990, 3999])(
  'secrets in a long text are masked completely, even where the text is cut (%i)',
  (at) => {
    const { text } = createScrub({ secrets: ['canary-secret-canary'] })
    for (const hidden of [
      'canary-secret-canary',
      'sk_canary_canary_canary',
      'canary@canary.example',
      'Bearer canary.canary.canary',
      'eyJcanary.canary.canary',
      'https://canary:canary@example.com/?canary=canary',
      '203.0.113.177',
    ])
      for (const before of [
        `${'x '.repeat(5000).slice(0, at - 1)} `,
        'a@b.co '.repeat(2000).slice(0, at - 1 - ((at - 1) % 7)),
      ]) {
        const clean = text(`${before}${hidden} ${'y '.repeat(3000)}`)
        expect(clean.replace(/\[secret\]|\[address\]/g, '')).not.toMatch(/cana|203\./)
      }
  },
)

test('values keep their shape to six levels, fifty entries and fifty keys, and no further', () => {
  const { value } = createScrub()
  const nested = (depth: number): unknown => (depth === 0 ? 'x' : { a: nested(depth - 1) })
  expect(JSON.stringify(value(nested(5)))).toBe(JSON.stringify(nested(5)))
  expect(JSON.stringify(value(nested(6)))).toBe(JSON.stringify(nested(6)))
  expect(JSON.stringify(value(nested(7)))).toContain('[deeper]')
  expect(value(Array.from({ length: 51 }, (_, n) => n))).toEqual(Array.from({ length: 50 }, (_, n) => n))
  const keys = Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`k${n}`, n]))
  expect(Object.keys(value(keys) as object)).toEqual(Object.keys(keys).slice(0, 50))
})

test.each([
  // A personal name; what a request carried; keys to something.
  'email',
  ...['cookie', 'responseHeaders', 'payload', 'urlParams', 'fragment', 'queryText', 'requestBody', 'search'],
  ...['signature', 'privateKey', 'api-key', 'link_key', 'dsn', 'session'],
])('the value of %s is removed', (key) => {
  expect(createScrub().value({ [key]: 'canary', lesson: 3 })).toEqual({ [key]: '[removed]', lesson: 3 })
})

test('a key loses its address too, also where its value is removed', () => {
  const clean = createScrub().value({ 'cookie of ada@example.com': 1, 'seen by ada@example.com': 1 })
  expect(clean).toEqual({ 'cookie of [address]': '[removed]', 'seen by [address]': 1 })
})

test('values of other types become texts that say as much as may be said', () => {
  const { value } = createScrub()
  expect(
    value({
      url: new URL('https://u:p@example.com/a?b=c'),
      at: new Date(0),
      never: new Date(Number.NaN),
      error: new TypeError('of a@b.example'),
      bytes: new Uint8Array([1]),
      big: 1n,
      work: () => {},
      nothing: null,
      no: false,
      ratio: 0.5,
    }),
  ).toEqual({
    url: 'https://example.com/a',
    at: '1970-01-01T00:00:00.000Z',
    never: '[no date]',
    error: 'TypeError: of [address]',
    bytes: '[bytes]',
    big: '[bigint]',
    work: '[function]',
    nothing: null,
    no: false,
    ratio: 0.5,
  })
})

test('an unreadable value loses only itself', () => {
  const broken = Object.defineProperty({ kept: 1 }, 'broken', {
    enumerable: true,
    get: () => {
      throw new Error('no')
    },
  })
  expect(createScrub().value([broken, 2])).toEqual([{ kept: 1, broken: '[unreadable]' }, 2])
})

test('a reporter gets a scrubbed message, context and user id, and the error as it is', () => {
  const seen: unknown[] = []
  const { report } = scrubbing(
    { report: (one) => void seen.push(one) },
    createScrub({ secrets: ['hunter2'] }),
  )
  const error = new Error('hunter2')
  report({ kind: 'error', error, context: { why: 'hunter2' } })
  report({ kind: 'message', message: 'hunter2', level: 'error', context: { why: 'hunter2' } })
  report({ kind: 'message', message: 'm', level: 'info', context: 'hunter2' as never })
  report({ kind: 'user', user: { id: 'hunter2', email: 'a@b.example' } as { id: string } })
  report({ kind: 'user', user: undefined })
  expect(seen).toEqual([
    { kind: 'error', error, context: { why: '[secret]' } },
    { kind: 'message', message: '[secret]', level: 'error', context: { why: '[secret]' } },
    { kind: 'message', message: 'm', level: 'info', context: undefined },
    { kind: 'user', user: { id: '[secret]' } },
    { kind: 'user', user: undefined },
  ])
})

test('credentials of a header are removed however its scheme is written', () => {
  const { text } = createScrub({ secrets: [] })
  for (const scheme of ['Bearer', 'bearer', 'BASIC'])
    expect(text(`sent ${scheme} YWRhOmNhbmFyeQ== twice`)).not.toContain('YWRhOmNhbmFyeQ')
})
