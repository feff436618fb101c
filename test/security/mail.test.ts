import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mailboxKey } from '../../src/core/address.ts'
import { UNCONFIRMED_KEPT_MS } from '../../src/core/course/due.ts'
import { inertText, recordUrl } from '../../src/core/mail/transactional.ts'
import type { PlatformOptions } from '../../src/daemon/index.ts'
import { accountPlatform, bodyOf, NOW, RECORDS, token } from '../support/accounts.ts'
import { anyText } from '../support/any-text.ts'
import { begin } from '../support/learning.ts'
import { asking } from '../support/opened.ts'
import { addressOf, openTestStore, STORES } from '../support/stores.ts'
import { asked, subscribe } from '../support/subscribers.ts'

const DAY = 86_400_000
const BROWSER = { Accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8', 'User-Agent': 'Mozilla/5.0' }

/** A platform with one unconfirmed subscription, and the path of its link. */
async function unconfirmed(options: Partial<PlatformOptions> = {}) {
  const it = await accountPlatform(options)
  await it.post('/api/email/subscribe', { email: 'grace@example.org' })
  await expect.poll(() => it.messages.length, { timeout: 10_000 }).toBe(1)
  const link = new URL(/https?:\S+token=[\w-]+/.exec(it.messages[0]?.text ?? '')?.[0] ?? '')
  const path = link.pathname + link.search
  const follow = (headers: Record<string, string>, method = 'GET', more = '') =>
    asking(it.platform).ask(path + more, { method, headers })
  const store = await openTestStore({ kind: 'sqlite', file: it.file })
  const state = async () => (await store.course.find('grace@example.org'))?.state
  return { ...it, follow, state }
}

const SCANNERS = {
  'names no HTML': { Accept: '*/*', 'User-Agent': 'Mozilla/5.0' },
  'accepts nothing in particular': { Accept: '' },
  'accepts pictures': { Accept: 'image/avif,image/webp,*/*;q=0.8' },
  'Outlook’s link preview': { ...BROWSER, 'User-Agent': 'Mozilla/5.0 (Windows NT 10.0) BingPreview/1.0b' },
  'a filter that names itself': { ...BROWSER, 'User-Agent': 'Mozilla/5.0 (compatible; Barracuda Sentinel)' },
  'a crawler': { ...BROWSER, 'User-Agent': 'Mozilla/5.0 (compatible; Googlebot/2.1)' },
  'a messenger': { ...BROWSER, 'User-Agent': 'WhatsApp/2.23' },
  'a prefetch': { ...BROWSER, 'Sec-Purpose': 'prefetch' },
}

test('a fetch of the confirmation link by a scanner confirms nothing; a person does afterwards', async () => {
  const { follow, state } = await unconfirmed()
  const statuses = new Set<number>()
  for (const [scanner, headers] of Object.entries(SCANNERS)) {
    const looked = await follow(headers)
    statuses.add(looked.status)
    if (looked.status === 200)
      expect(await looked.text()).toMatch(/<form method="post" action="\/api\/email\/confirm\?token=[\w-]+">/)
    expect(await state(), scanner).toBe('unconfirmed')
  }
  expect([...statuses].toSorted()).toEqual([200, 204])
  expect((await follow(BROWSER, 'POST')).status).toBe(200)
  expect(await state()).toBe('confirmed')
})

test.each<[says: string, headers: Record<string, string>]>([
  ['You are subscribed', BROWSER],
  ['You are subscribed', { Accept: 'text/html, application/json;q=0.9' }],
  ['{"status":"confirmed"}', { Accept: 'application/json' }],
  ['You are subscribed', {}],
])('a person confirms by GET, and reads %s, with the headers %j', async (says, headers) => {
  const { follow, state } = await unconfirmed()
  const answer = await follow(headers)
  expect([answer.status, await state()]).toEqual([200, 'confirmed'])
  expect(await answer.text()).toContain(says)
})

test.each<[where: string, Partial<PlatformOptions>]>([
  ['asked for by the program', { confirmation: 'button', platform: { confirmation: 'link' } }],
  ['asked for by the definition', { platform: { confirmation: 'button' } }],
])(
  'with confirmation by button, %s, no GET confirms, and the button does, twice the same',
  async (_, options) => {
    const { follow, state } = await unconfirmed(options)
    const page = await (await follow(BROWSER, 'GET', '&language=de')).text()
    expect(page).toContain('<button type="submit">Bestätigen</button>')
    // The page that answers the button is of the same course, and in the same language.
    expect(page).toMatch(/action="[^"]+&amp;language=de"/)
    expect(await bodyOf(await follow({ Accept: 'application/json' }))).toEqual({ status: 'unconfirmed' })
    expect(await state()).toBe('unconfirmed')
    for (let n = 0; n < 2; n += 1) expect((await follow(BROWSER, 'POST')).status).toBe(200)
    expect(await state()).toBe('confirmed')
    expect(await (await follow(BROWSER)).text()).toContain('You are subscribed')
  },
)

/** A platform with a subscriber, and the path of the link that ends the subscription. */
async function subscribed(options: Partial<PlatformOptions> = {}) {
  const it = await unconfirmed(options)
  await it.follow(BROWSER, 'POST')
  await it.platform.dispatch({ limit: 1 })
  const link = new URL(/<(.*)>/.exec(it.messages[1]?.headers['List-Unsubscribe'] ?? '')?.[1] ?? '')
  const forged = `${link.pathname}?s=AAAAAAAAAAAA.1&t=x`
  const open = (
    headers: Record<string, string>,
    method = 'GET',
    path = link.pathname + link.search,
    body: FormData | URLSearchParams | null = null,
  ) => asking(it.platform).ask(path, { method, headers, body })
  return { state: it.state, open, forged }
}
/** A page without what differs between two requests. */
const pageOf = async (response: Response) =>
  (await response.text()).replaceAll(/nonce="[^"]*"|action="[^"]*"/g, '')

test('a fetch of the unsubscribe link by a scanner unsubscribes nobody, and its answer shows no forgery; a person does afterwards', async () => {
  const { open, state, forged } = await subscribed()
  for (const [scanner, headers] of Object.entries(SCANNERS)) {
    const [looked, guessed] = [await open(headers), await open(headers, 'GET', forged)]
    expect(looked.status).toBe(guessed.status)
    const page = await pageOf(looked)
    expect(page).toBe(await pageOf(guessed))
    if (looked.status === 200) expect(page).toContain('<button type="submit">Unsubscribe</button>')
    expect(page).not.toMatch(/unsubscribed/i)
    expect(await state(), scanner).toBe('confirmed')
  }
  expect(await (await open(BROWSER)).text()).toContain('<h1>Unsubscribed</h1>')
  expect(await state()).toBe('unsubscribed')
})

test('a mail program unsubscribes by POST with one click, whatever it calls itself, in either form of RFC 8058', async () => {
  const { open, state } = await subscribed()
  const parts = new FormData()
  parts.set('List-Unsubscribe', 'One-Click')
  const headers = { Accept: '*/*', 'User-Agent': 'GoogleImageProxy' }
  expect((await open(headers, 'POST', undefined, parts)).status).toBe(200)
  expect(await state()).toBe('unsubscribed')
})

test('with unsubscription by button, asked for by the definition, no GET unsubscribes and the button does, and that of its page undoes it', async () => {
  const { open, state, forged } = await subscribed({ platform: { unsubscription: 'button' } })
  const press = async (page: Response) => {
    const html = await page.text()
    const [, action = '', hidden = ''] = /<form method="post" action="([^"]+)">(.*?)<p>/.exec(html) ?? []
    const fields = [...hidden.matchAll(/name="(\w+)" value="(\w+)"/g)].map((one) => one.slice(1).join('='))
    return open(BROWSER, 'POST', action.replaceAll('&amp;', '&'), new URLSearchParams(fields.join('&')))
  }
  expect(await pageOf(await open(BROWSER))).toBe(await pageOf(await open(BROWSER, 'GET', forged)))
  expect(await bodyOf(await open({ Accept: 'application/json' }))).toEqual({ status: 'unchanged' })
  expect(await state()).toBe('confirmed')
  const left = await press(await open(BROWSER))
  expect(await state()).toBe('unsubscribed')
  expect(await (await press(left)).text()).toContain('<h1>Welcome back</h1>')
  expect(await state()).toBe('confirmed')
})

test.each(['program', 'definition', 'program, before that of the definition,'])(
  'a challenge of the %s decides who may subscribe',
  async (whose) => {
    const asked: unknown[] = []
    const challenge: PlatformOptions['challenge'] = async (question) => {
      asked.push(question)
      return question.response === 'right'
    }
    const { post, messages, platform } = await accountPlatform(
      whose === 'definition'
        ? { platform: { challenge } }
        : { challenge, ...(whose !== 'program' && { platform: { challenge: () => false } }) },
    )
    const refused = await post('/api/email/subscribe', { email: 'a@example.com', challenge: 'wrong' })
    expect(refused.status).toBe(400)
    expect(await bodyOf(refused)).toMatchObject({ code: 'challenge_failed' })
    expect((await post('/api/email/subscribe', { email: 'a@example.com' })).status).toBe(400)
    expect((await post('/api/email/subscribe', { email: 'a@example.com', challenge: 'right' })).status).toBe(
      202,
    )
    await expect.poll(() => messages.length).toBe(1)
    expect(asked[0]).toMatchObject({ response: 'wrong', email: 'a@example.com', client: 'embedded' })
    const visitor = '198.51.100.7'
    await asking(platform).post('/api/email/subscribe', { email: 'b@example.com' }, {}, visitor)
    expect(asked.at(-1)).toMatchObject({ response: undefined, client: visitor })
  },
)

test('the functions of a definition get the variables of its groups from the environment of the platform', async () => {
  const kiln = {
    unlocks: 'the kiln',
    absent: 'no kiln',
    variables: { CAPTCHA_SECRET: { kind: 'secret' }, KILN_MAIL: { kind: 'email' } },
  } as const
  const { post } = await accountPlatform({
    env: { CAPTCHA_SECRET: 'captcha-secret-of-the-kiln', KILN_MAIL: 'mistyped' },
    platform: {
      groups: { kiln },
      challenge: ({ response, value }) => response === value('CAPTCHA_SECRET'),
      templates: {
        welcome: {
          by: 'person',
          resolve: (_, { value }) =>
            value('CAPTCHA_SECRET') && value('KILN_MAIL') === undefined
              ? { to: 'a@example.com', slots: { startUrl: 'https://kiln.example/' }, about: 'kiln' }
              : undefined,
        },
      },
    },
  })
  const subscribe = async (challenge: string) =>
    (await post('/api/email/subscribe', { email: 'a@example.com', challenge })).status
  expect(await subscribe('captcha-secret-of-the-kiln')).toBe(202)
  expect(await subscribe('guessed')).toBe(400)
  const mailed = await post('/api/email', { template: 'welcome' }, await token())
  expect(await bodyOf(mailed)).toMatchObject({ sent: true })
})

test('what a request gives as input fills no slot that the definition leaves out', async () => {
  const { post, messages } = await accountPlatform({
    platform: {
      templates: {
        'organisation-invite': {
          ...{ by: 'person', inputs: ['organisation'], slots: { organisation: 'text', inviteUrl: 'url' } },
          resolve: () => ({ to: 'a@example.com', slots: { inviteUrl: 'https://kiln.example/' }, about: 'a' }),
        },
      },
    },
  })
  const asked = { template: 'organisation-invite', inputs: { organisation: 'evil.example' } }
  const answer = await bodyOf(await post('/api/email', asked, await token()))
  expect(answer).toMatchObject({ sent: false, reason: expect.stringContaining('organisation') })
  expect(messages).toEqual([])
})

test.each([
  ['throws', () => JSON.parse('<html>')],
  ['rejects', () => Promise.reject(new TypeError('fetch failed'))],
])(
  'while a challenge %s, a subscriber is asked to come back in a minute, and the log says so',
  async (_, challenge) => {
    const logged: string[] = []
    const note = (level: string) => (event: string) => logged.push(`${level} ${event}`)
    const log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
    const { post, messages } = await accountPlatform({ challenge, log })
    const answer = await post('/api/email/subscribe', { email: 'a@example.com', challenge: 'right' })
    expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '60'])
    expect(await bodyOf(answer)).toMatchObject({ code: 'unavailable' })
    expect(logged).toContain('error challenge_fault')
    expect(messages).toEqual([])
  },
)

/** Spellings of one mailbox. */
const SPELLINGS = [
  'josé@example.com',
  '"josé"@example.com',
  'jose\u0301@example.com',
  'JOSÉ@EXAMPLE.com',
  'jo\u00adsé@example.com',
  'jo\u200bsé@example.com',
  'jo\u200dsé@example.com',
  'ｊｏｓé@example.com',
  'josé\ufe0f@example.com',
]
const ASCII = [
  'ada@example.com',
  '"ada"@example.com',
  '"a\\da"@example.com',
  'ADA@example.com',
  '"A\\D\\A"@example.com',
]

test('folding a key again changes nothing, and mailboxes that differ in a letter differ', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), (local) => {
      const key = mailboxKey(`${local}@example.com`)
      expect(mailboxKey(key)).toBe(key)
    }),
  )
  expect(mailboxKey('ada@example.com')).not.toBe(mailboxKey('ade@example.com'))
  expect(mailboxKey('ada+a@example.com')).not.toBe(mailboxKey('ada+b@example.com'))
})

test('spelling an address anew mails it no second confirmation within the hour', async () => {
  for (const spellings of [SPELLINGS, ASCII]) {
    const { post, messages, platform } = await accountPlatform()
    let taken = 0
    for (const email of spellings)
      if ((await post('/api/email/subscribe', { email })).status === 202) taken += 1
    expect(taken).toBeGreaterThan(3)
    await platform.close()
    expect(messages).toHaveLength(1)
  }
})

describe.each(STORES)('on the store %s', (kind) => {
  test('one mailbox gets one confirmation an hour under two spellings, and the second leaves no row', async () => {
    const { course } = await openTestStore(await addressOf(kind))
    const mailboxKey = 'one@example.com'
    expect(await course.requestConfirmation(asked('first', NOW, { mailboxKey }))).toMatchObject({
      mail: true,
    })
    expect(await course.requestConfirmation(asked('second', NOW + 1, { mailboxKey }))).toEqual({
      mail: false,
      exhausted: false,
    })
    expect(await course.findById('second')).toBeUndefined()
    // Asked again under the id that it has, as a new link is, a row that is known stays.
    expect(await course.requestConfirmation(asked('first', NOW + 1, { mailboxKey }))).toMatchObject({
      mail: false,
    })
    expect(await course.findById('first')).toBeDefined()
    expect(await course.requestConfirmation(asked('third', NOW + 2))).toMatchObject({ mail: true })
  })

  test('the whole platform mails no more confirmations a day than its budget, and more a day later', async () => {
    const { course } = await openTestStore(await addressOf(kind))
    for (let n = 0; n < 3; n += 1)
      expect(await course.requestConfirmation(asked(`a${n}`, NOW + n, { mostADay: 3 }))).toMatchObject({
        mail: true,
      })
    const refused = { mail: false, exhausted: true }
    expect(await course.requestConfirmation(asked('b', NOW + 9, { mostADay: 3 }))).toEqual(refused)
    // The same for an address that is known, so that it tells nothing about one.
    expect(await course.requestConfirmation(asked('a0', NOW + 9, { mostADay: 3 }))).toEqual(refused)
    expect(await course.confirm({ begin, tokenHash: asked('a1', NOW + 1).tokenHash, now: NOW + 9 })).toBe(
      'confirmed',
    )
    expect(await course.requestConfirmation(asked('a1', NOW + 9, { mostADay: 3 }))).toEqual(refused)
    expect(await course.findById('b')).toBeUndefined()
    expect(await course.requestConfirmation(asked('b', NOW + DAY + 9, { mostADay: 3 }))).toMatchObject({
      mail: true,
    })
  })

  test('many who subscribe at once get no more confirmations than the budget has left', async () => {
    const { course } = await openTestStore(await addressOf(kind))
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) => course.requestConfirmation(asked(`a${n}`, NOW, { mostADay: 3 }))),
    )
    expect(answers.filter(({ mail }) => mail)).toHaveLength(3)
  })

  test('unconfirmed addresses are deleted 30 days after their last link, and nothing else is', async () => {
    const { course } = await openTestStore(await addressOf(kind))
    const start = NOW - UNCONFIRMED_KEPT_MS - 10 * DAY
    await course.requestConfirmation(asked('old', start))
    await course.requestConfirmation(asked('again', start))
    await course.requestConfirmation(asked('again', NOW - 5 * DAY))
    await subscribe({ course }, 'confirmed', start)
    // The row of somebody who left keeps them from being mailed again.
    await subscribe({ course }, 'left', start)
    await course.unsubscribe({ id: 'left', now: start + 1 })
    await course.requestConfirmation(asked('fresh', NOW - DAY))
    await course.pruneUnconfirmed(NOW - UNCONFIRMED_KEPT_MS)
    expect(await course.findById('old')).toBeUndefined()
    const counts = { unconfirmed: 2, confirmed: 1, unsubscribed: 1 }
    expect((await course.counts(NOW)).byState).toMatchObject(counts)
    expect(await course.findById('again')).toBeDefined()
  })

  test('looking at a link says what it would do and does nothing', async () => {
    const { course } = await openTestStore(await addressOf(kind))
    await course.requestConfirmation(asked('a', NOW))
    const look = (now: number, tokenHash = `a.${NOW}`) => course.checkToken({ tokenHash, now })
    expect([await look(NOW), await look(NOW), await look(NOW, 'x'), await look(NOW + 8 * DAY)]).toEqual([
      'use',
      'use',
      'invalid',
      'expired',
    ])
    expect((await course.findById('a'))?.state).toBe('unconfirmed')
    await course.confirm({ begin, tokenHash: `a.${NOW}`, now: NOW })
    expect(await look(NOW)).toBe('confirmed')
  })
})

test('tells every caller when the budget of confirmations is used up, and counts it in the metrics', async () => {
  const { post, platform } = await accountPlatform({ env: { EMAIL_CONFIRMATIONS_PER_DAY: '1' } })
  expect(await bodyOf(await post('/api/email/subscribe', { email: 'a@example.com' }))).toEqual({
    status: 'pending',
    sent: true,
  })
  const answers = await Promise.all(
    ['a@example.com', 'b@example.com'].map(async (email) =>
      bodyOf(await post('/api/email/subscribe', { email })),
    ),
  )
  expect(answers[0]).toMatchObject({ status: 'pending', sent: false })
  expect(answers[1]).toEqual(answers[0])
  const metrics = await (await platform.web.fetch(new Request('http://web.example/metrics'))).text()
  expect(metrics).toMatch(/^platformctl_confirmations_refused_total 2$/m)
})

test('twenty invites do not block sign-in mails', async () => {
  const invites = Array.from(
    { length: 20 },
    (_, n) => `('i${n}', 'lab', 'alan@example.org', '/invites/${n}', NULL)`,
  ).join(',')
  const { post, messages } = await accountPlatform({
    sql: `${RECORDS} INSERT INTO organisation_invite (id, organisation, address, url, closed_at) VALUES ${invites};`,
  })
  const ada = await token()
  const answers = []
  for (let n = 0; n < 20; n += 1)
    answers.push(
      await bodyOf(
        await post('/api/email', { template: 'organisation-invite', inputs: { inviteId: `i${n}` } }, ada),
      ),
    )
  expect(answers.filter(({ sent }) => sent === true)).toHaveLength(5)
  const service = await token({ role: 'service_role' })
  const signIn = await post(
    '/api/email',
    { template: 'magic-link', inputs: { loginRequestId: 'fresh' } },
    service,
  )
  expect(await bodyOf(signIn)).toMatchObject({ sent: true })
  await expect.poll(() => messages.length).toBe(6)
})

test.each([
  ['/invites/1?k=2', 'https://www.example.com/invites/1?k=2'],
  ['invites/1', 'https://www.example.com/invites/1'],
  ['https://login.example.net/?once=1', 'https://login.example.net/?once=1'],
  ['//evil.example', undefined],
  ['/\\evil.example', undefined],
  ['\\\\evil.example', undefined],
  ['/\t/evil.example', undefined],
  ['\n//evil.example', undefined],
  ['https:/\\evil.example', undefined],
  ['https:evil.example', undefined],
  ['https:///evil.example', undefined],
  ['javascript:alert(1)', undefined],
  ['data:text/html,x', undefined],
  ['http://', undefined],
])('the record’s link %j becomes %j', (url, expected) => {
  expect(recordUrl(url, 'https://www.example.com')).toBe(expected)
})

test('a record’s link stays on the site, whatever its path', () => {
  const parts = fc.constantFrom(...'/ \\ // . .. evil.example @ : \t \n https %2f ? # a'.split(' '))
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 8 }), (pieces) => {
      const url = pieces.join('')
      const link = recordUrl(url, 'https://www.example.com')
      if (link !== undefined && !/^https?:\/\/[^/\\?#]/i.test(url))
        expect(new URL(link).origin).toBe('https://www.example.com')
    }),
    { numRuns: 500 },
  )
})

test.each([
  ['Ada’s physics class', 'Ada’s physics class'],
  ['Kiln & Co. KG', 'Kiln & Co. KG'],
  ['Klasse 3.5', 'Klasse 3.5'],
  ['می‌خواهم', 'می‌خواهم'],
  ['👩‍🔬 Lab', '👩‍🔬 Lab'],
  ['Win at https://evil.example/x now', 'Win at https: evil. example/x now'],
  ['evil.example', 'evil. example'],
  ['evil。example', 'evil. example'],
  ['www.evil.example/login', 'www. evil. example/login'],
  ['mail me@evil.example', 'mail me at evil. example'],
  ['safe\u202eelpmaxe.live', 'safeelpmaxe. live'],
  ['pay\u00adpal\u200b\u2066', 'paypal'],
  ['two\r\nlines\u2028three', 'two lines three'],
])('the name %j is mailed as %j', (name, expected) => {
  expect(inertText(name)).toBe(expected)
})

test('no name, whatever it is, brings a link, a direction or a line into a subject', () => {
  const signs = [
    'http://',
    'https://',
    'www.',
    'evil',
    '.',
    'example',
    '@',
    '\u202e',
    '\u200b',
    '\n',
    '。',
    '＠',
    '/',
  ]
  const piece = fc.oneof(anyText({ maxLength: 6 }), fc.constantFrom(...signs))
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = inertText(pieces.join(''))
      expect(text).not.toMatch(
        /:\/\/|[@＠]|[\p{L}\p{N}_-][.。．｡][\p{L}]|[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069\u00ad\u200b]/u,
      )
      expect(text.isWellFormed()).toBe(true)
      expect(inertText(text)).toBe(text)
    }),
    { numRuns: 500 },
  )
})

test('an invite with a hostile name or link: the name is inert, the link goes nowhere', async () => {
  const { post, messages } = await accountPlatform({
    sql: `${RECORDS}
      INSERT INTO organisation (id, name, locked_at) VALUES ('bad', 'Win https://evil.example ' || char(0x202e), NULL);
      INSERT INTO organisation_admin (organisation, subject) VALUES ('bad', 'ada');
      INSERT INTO organisation_invite (id, organisation, address, url, closed_at) VALUES
        ('name', 'bad', 'grace@example.org', '/invites/x', NULL), ('link', 'bad', 'grace@example.org', '//evil.example', NULL);`,
  })
  const ask = async (inviteId: string) =>
    bodyOf(await post('/api/email', { template: 'organisation-invite', inputs: { inviteId } }, await token()))
  expect(await ask('name')).toMatchObject({ sent: true })
  await expect.poll(() => messages[0]?.subject).toBe('An invitation to Win https: evil. example')
  expect(await ask('link')).toEqual({ sent: false, reason: expect.stringContaining('no link') })
  expect(messages).toHaveLength(1)
})
