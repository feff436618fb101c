import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { accountPlatform, bodyOf, clock, NOW, RECORDS, token } from '../support/accounts.ts'
import { newStoreUrl, opened } from '../support/opened.ts'
import { testTransport } from '../support/test-transport.ts'

const SERVICE = { role: 'service_role', sub: undefined, email: undefined }
const mailFor = (template: string, inputs?: unknown) => ({
  template,
  ...(inputs === undefined ? {} : { inputs }),
})

test.each([
  [
    'organisation-invite',
    { inviteId: 'open' },
    {},
    'grace@example.org',
    'https://www.example.com/invites/open?k=1',
  ],
  [
    'magic-link',
    { loginRequestId: 'fresh' },
    SERVICE,
    'alan@example.org',
    'https://login.example.com/?once=1',
  ],
  ['welcome', {}, {}, 'ada@example.com', 'https://www.example.com/'],
  ['exam-passed', { examAttemptId: 'passed' }, {}, 'ada@example.com', 'https://www.example.com/exams/passed'],
])('%s goes to the address and with the link of the record', async (template, inputs, claims, to, link) => {
  const it = await accountPlatform({ sql: RECORDS })
  const response = await it.post('/api/email', mailFor(template, inputs), await token(claims))
  expect(response.status).toBe(200)
  expect(await bodyOf(response)).toEqual({ sent: true, queued: true, id: expect.stringContaining('@') })
  await expect.poll(() => it.messages.length).toBe(1)
  expect(it.messages.map((message) => message.to.address)).toEqual([to])
  expect(it.messages[0]?.text).toContain(link)
})

test('a mail asked for again, at once or later, is sent once', async () => {
  const it = await accountPlatform({ sql: RECORDS })
  const ask = async () =>
    bodyOf(await it.post('/api/email', mailFor('organisation-invite', { inviteId: 'open' }), await token()))
  for (const { sent } of await Promise.all([ask(), ask()])) expect(sent).toBe(true)
  await expect.poll(ask).toEqual({ sent: true, id: 'provider-1' })
  expect(it.messages).toHaveLength(1)
  // The record now names somebody else: another mail needs a record of its own.
  const database = new Database(it.file)
  database.exec(`UPDATE organisation_invite SET address = 'eve@example.org' WHERE id = 'open'`)
  database.close()
  expect(await ask()).toMatchObject({ code: 'conflict', status: 409 })
  expect(it.messages).toHaveLength(1)
})

test('a dispatch takes its run from the query and its limit from the body', async () => {
  const it = await accountPlatform({ env: { EMAIL_DISPATCH_SECRET: 'dispatch-secret-of-some-length' } })
  for (const name of ['ada', 'bob', 'cai']) await it.platform.courses.enrol({ email: `${name}@example.com` })
  const headers = { Authorization: 'Bearer dispatch-secret-of-some-length' }
  const answer = await it.post('/api/email/dispatch?run=nightly-07', { limit: 2 }, undefined, headers)
  expect(await bodyOf(answer)).toMatchObject({ sent: 2, remaining: 1 })
})

test('each person is welcomed, each passed exam is mailed with its score, and each sign-in with its link, once', async () => {
  const second = `INSERT INTO exam_attempt (id, subject, exam, score_percent, url, passed_at) VALUES ('second', 'ada', 'Noise', 64, '/', 6)`
  const again = `INSERT INTO login_request (id, address, url, expires_at) VALUES ('again', 'alan@example.org', 'https://login.example.com/?once=3', ${NOW + 1}), ('late', 'alan@example.org', '/', ${NOW + 1})`
  let now = NOW
  const it = await accountPlatform({
    sql: `${RECORDS}; ${second}; ${again}`,
    clock: { ...clock, now: () => now },
  })
  const [ada, grace] = [await token(), await token({ sub: 'grace', email: 'grace@example.com' })]
  const service = await token(SERVICE)
  const signIn = (loginRequestId: string) => mailFor('magic-link', { loginRequestId })
  const exam = (examAttemptId: string) => mailFor('exam-passed', { examAttemptId })
  for (const [mail, who, place] of [
    [mailFor('welcome'), ada, 'ada@example.com'],
    [mailFor('welcome'), grace, 'grace@example.com'],
    [exam('passed'), ada, '87 %'],
    [exam('second'), ada, '64 %'],
    [signIn('fresh'), service, '?once=1'],
    [signIn('again'), service, '?once=3'],
  ] as const) {
    const before = it.messages.length
    for (const _ of 'twice') expect((await it.post('/api/email', mail, who)).status).toBe(200)
    await expect.poll(() => it.messages.length).toBe(before + 1)
    const sent = it.messages[before]
    expect(`${sent?.to.address} ${sent?.text}`).toContain(place)
  }
  // The account is the same under another address, and is welcomed already.
  const moved = await token({ email: 'ada@example.org' })
  expect((await it.post('/api/email', mailFor('welcome'), moved)).status).toBe(409)
  now += 1
  expect((await it.post('/api/email', signIn('late'), service)).status).toBe(404)
})

test('after five mails to one inbox in an hour, the answer says so and nothing more is sent', async () => {
  const invites = Array.from(
    { length: 7 },
    (_, n) => `('i${n}', 'lab', 'grace@example.org', '/i/${n}', NULL)`,
  )
  const sql = `${RECORDS}; INSERT INTO organisation_invite (id, organisation, address, url, closed_at) VALUES ${invites.join()};`
  const it = await accountPlatform({ sql })
  const answers = []
  for (let n = 0; n < 7; n += 1)
    answers.push(
      await bodyOf(
        await it.post('/api/email', mailFor('organisation-invite', { inviteId: `i${n}` }), await token()),
      ),
    )
  expect(answers.map(({ sent }) => sent)).toEqual([true, true, true, true, true, false, false])
  expect(answers[6]).toEqual({
    sent: false,
    reason: 'this recipient has had enough mail for now; try again later',
  })
  await expect.poll(() => it.messages.length).toBe(5)
})

test('a mail that the provider could not take is sent again by the platform, with the same bytes', async () => {
  let now = NOW
  const tried: unknown[] = []
  const it = await accountPlatform({
    clock: { ...clock, now: () => now },
    mailer: testTransport(async (message) => {
      tried.push(message)
      return tried.length === 1
        ? {
            kind: 'transient',
            scope: 'message',
            reason: 'the mail server cannot take the message now (451)',
          }
        : { kind: 'sent', id: 'provider-2' }
    }),
  })
  const ask = async () => bodyOf(await it.post('/api/email', mailFor('welcome'), await token()))
  expect(await ask()).toMatchObject({ sent: true, queued: true })
  await expect.poll(() => tried.length).toBe(1)
  now += 5 * 60_000
  await expect.poll(ask).toEqual({ sent: true, id: 'provider-2' })
  expect(tried[1]).toEqual(tried[0])
})

test('an unconfirmed subscription gets a new link at its own spelling, within its limits', async () => {
  let now = NOW
  const it = await accountPlatform({ clock: { now: () => now, monotonic: () => 0, sleep: async () => {} } })
  await it.post('/api/email/subscribe', { email: 'Ada@Example.com' })
  await expect.poll(() => it.messages.length).toBe(1)
  const ask = async () =>
    bodyOf(
      await it.post(
        '/api/email',
        mailFor('subscription-confirmation'),
        await token({ exp: now / 1000 + 600 }),
      ),
    )
  expect(await ask()).toEqual({
    sent: false,
    reason: 'a confirmation to this address was asked for not long ago',
  })
  now += 60 * 60 * 1000
  expect(await ask()).toMatchObject({ sent: true, queued: true })
  await expect.poll(() => it.messages.length).toBe(2)
  expect(it.messages[1]?.to.address).toBe('Ada@Example.com')
  const link = new URL(/https?:\S+token=\S+/.exec(it.messages[1]?.text ?? '')?.[0] ?? '')
  const confirmed = await it.platform.web.fetch(
    new Request(`http://web.example${link.pathname}${link.search}`, { headers: { Accept: 'text/html' } }),
  )
  expect(confirmed.status).toBe(200)
  expect(await ask()).toMatchObject({ code: 'not_found' })
})

test('a record of another caller looks the same as a missing one', async () => {
  const it = await accountPlatform({ sql: RECORDS })
  const [ada, eve, service] = [await token(), await token({ sub: 'eve' }), await token(SERVICE)]
  const asked = [
    ['organisation-invite', { inviteId: 'no-such' }, ada],
    ['organisation-invite', { inviteId: 'open' }, eve],
    ['organisation-invite', { inviteId: 'closed' }, ada],
    ['organisation-invite', { inviteId: 'open' }, service],
    ['organisation-invite', { inviteId: 'unpaid' }, eve],
    ['magic-link', { loginRequestId: 'no-such' }, service],
    ['magic-link', { loginRequestId: 'old' }, service],
    ['magic-link', { loginRequestId: 'fresh' }, ada],
    ['exam-passed', { examAttemptId: 'no-such' }, ada],
    ['exam-passed', { examAttemptId: 'other' }, ada],
    ['exam-passed', { examAttemptId: 'failed' }, ada],
    ['exam-passed', { examAttemptId: 'passed' }, service],
    ['subscription-confirmation', {}, ada],
    ['welcome', {}, service],
  ] as const
  const answers = new Set<string>()
  for (const [template, inputs, bearer] of asked) {
    const response = await it.post('/api/email', mailFor(template, inputs), bearer, {
      'X-Request-Id': 'the-same-for-all',
    })
    answers.add(`${response.status} ${await response.text()}`)
  }
  expect([...answers]).toEqual([
    '404 {"code":"not_found","status":404,"message":"There is no such record for this caller.","requestId":"the-same-for-all"}',
  ])
  expect(it.messages).toEqual([])
})

test('an organisation whose plan does not cover invites gets a 402', async () => {
  const it = await accountPlatform({ sql: RECORDS })
  const response = await it.post(
    '/api/email',
    mailFor('organisation-invite', { inviteId: 'unpaid' }),
    await token(),
  )
  expect(response.status).toBe(402)
  expect(await bodyOf(response)).toMatchObject({ code: 'locked' })
})

test('a request that names no template, other inputs than its own, a recipient or a URL is a 400 that names the field', async () => {
  const it = await accountPlatform({ sql: RECORDS })
  const bearer = await token(SERVICE)
  const longest = mailFor('magic-link', { loginRequestId: 'a_.:-'.padEnd(128, 'a') })
  expect((await it.post('/api/email', longest, bearer)).status).toBe(404)
  const invite = { inviteId: 'open', address: 'eve@example.com' }
  const messages = {
    '': expect.stringMatching(/expected object/),
    // Those that somebody may ask for.
    template: 'one of organisation-invite, magic-link, welcome, subscription-confirmation, exam-passed',
  }
  for (const [body, path] of [
    [mailFor('newsletter', {}), 'template'],
    [mailFor('course-day-1', {}), 'template'],
    [{}, 'template'],
    [{ ...mailFor('welcome', {}), to: 'eve@example.com' }, 'to'],
    [mailFor('organisation-invite', invite), 'inputs.address'],
    [mailFor('welcome', { startUrl: 'https://evil.example' }), 'inputs.startUrl'],
    [mailFor('exam-passed', { examAttemptId: 'passed', day: 1 }), 'inputs.day'],
    [mailFor('magic-link', {}), 'inputs.loginRequestId'],
    [mailFor('magic-link', { loginRequestId: 5 }), 'inputs.loginRequestId'],
    [mailFor('magic-link', { loginRequestId: '../../etc' }), 'inputs.loginRequestId'],
    [mailFor('magic-link', { loginRequestId: 'a'.repeat(129) }), 'inputs.loginRequestId'],
    ['{"template":"welcome","inputs":{"__proto__":{"x":1}}}', 'inputs.__proto__'],
    [[], ''],
    ['null', ''],
  ] as const) {
    const response = await it.post('/api/email', body, bearer)
    expect(response.status).toBe(400)
    const message = path === '' || path === 'template' ? { message: messages[path] } : {}
    expect(await bodyOf(response)).toMatchObject({ code: 'bad_request', issues: [{ path, ...message }] })
  }
  expect(it.messages).toEqual([])
})

test('without mail the answer is 200 and says why nothing was sent, and nothing is queued', async () => {
  const { platform, post } = opened({
    env: { STORE_URL: await newStoreUrl() },
    identify: async () => ({ kind: 'person', subject: 'ada', email: 'ada@example.com' }),
  })
  const response = await post('/api/email', mailFor('welcome', {}))
  expect(response.status).toBe(200)
  const notSent = { sent: false, reason: 'mail is not configured' }
  expect(await bodyOf(response)).toEqual(notSent)
  const mail = { to: 'ada@example.com', slots: { startUrl: 'https://www.example.com/' }, durable: true }
  expect(await platform.mail.send('welcome', mail)).toEqual(notSent)
  expect(await (await platform.store()).sending.queue(Date.now())).toEqual([])
})

test('an embedding program’s own directory and identity take the place of the store’s; it may say null for nobody and for no record', async () => {
  // As database clients do.
  const nothing = async () => null as unknown as undefined
  const it = await accountPlatform({
    identify: async (request) => {
      const user = request.headers.get('x-user')
      if (user === 'ada') return { kind: 'person', subject: 'ada', email: 'ada@example.com' }
      return user === 'backend' ? { kind: 'service' } : nothing()
    },
    directory: {
      findInvite: async ({ id, admin }) =>
        id === 'mine' && admin === 'ada'
          ? { address: 'grace@example.org', organisation: 'Own', url: '/join', locked: false }
          : nothing(),
      findLoginRequest: nothing,
      findPassedExam: nothing,
    },
  })
  const statusOf = async (body: unknown, user: string, jwt?: string) =>
    (await it.post('/api/email', body, jwt, { 'X-User': user })).status
  const invite = (inviteId: string) => mailFor('organisation-invite', { inviteId })
  for (const jwt of [undefined, await token()]) expect(await statusOf(invite('mine'), 'eve', jwt)).toBe(401)
  expect(await statusOf(invite('other'), 'ada')).toBe(404)
  expect(await statusOf(mailFor('exam-passed', { examAttemptId: 'mine' }), 'ada')).toBe(404)
  expect(await statusOf(mailFor('magic-link', { loginRequestId: 'mine' }), 'backend')).toBe(404)
  expect(await statusOf(invite('mine'), 'ada')).toBe(200)
  await expect.poll(() => it.messages.length).toBe(1)
  expect(it.messages[0]?.subject).toBe('An invitation to Own')
})
