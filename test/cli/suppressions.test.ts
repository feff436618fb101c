import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { suppressionHash } from '../../src/core/course/links.ts'
import { createBounceAddresses } from '../../src/core/mail/feedback/bounce-address.ts'
import type { CountedKind } from '../../src/core/mail/feedback/sending.ts'
import { applyFeedback } from '../../src/core/mail/feedback/store.ts'
import { recipientHashes } from '../../src/core/mail/send-once.ts'
import { openStore } from '../../src/core/store/open.ts'
import { emptyFolder } from '../support/folder.ts'
import { begin } from '../support/learning.ts'
import { run as runIn } from '../support/run.ts'
import { erasureOf } from '../support/subscribers.ts'

const NOW = Date.parse('2026-11-22T08:00:00Z')
const ADDRESS_KEY = 'the key of addresses of a test'
const clock = { now: () => NOW, monotonic: () => 0, sleep: async () => {} }

/** A data folder with two confirmed subscribers who got their first lesson. */
async function dataFolder({ env = {} }: { env?: Record<string, string> } = {}) {
  const cwd = await emptyFolder()
  const store = await openStore({ kind: 'sqlite', file: path.join(cwd, 'platform.sqlite') })
  onTestFinished(() => store.close())
  await store.getOrCreate('address_key', () => ADDRESS_KEY)
  for (const name of ['ada', 'grace']) {
    const address = `${name}@example.com`
    await store.course.requestConfirmation({
      course: 'quantum',
      identity: address,
      address,
      id: `id-${name}`,
      tokenHash: name,
      now: 1,
    })
    await store.course.confirm({ begin, tokenHash: name, now: 2 })
    await store.course.remember(`id-${name}`, {
      at: 3,
      kind: 'attempt',
      enrolment: 1,
      day: 1,
      outcome: 'sent',
      messageId: `lesson-of-${name}@example.com`,
    })
  }
  const run = (args: readonly string[], text = '') =>
    runIn(['email', ...args, '--data', '.'], {
      cwd,
      clock,
      env,
      stdin: (async function* () {
        yield Buffer.from(text)
      })(),
      operator: () => ({ name: 'ops', place: 'box-1' }),
    })
  return { cwd, store, run }
}

test('an added address gets no more mail; its removal needs a reason and is recorded', async () => {
  const { store, run } = await dataFolder()
  expect(
    await run(['suppressions', 'add', 'Ada@example.com', '--reason', 'asked by bob@example.com']),
  ).toMatchObject({
    code: 0,
    stdout: 'suppressed; its subscriptions have ended\n',
  })
  expect(await store.course.findById('id-ada')).toMatchObject({ state: 'unsubscribed' })
  expect((await run(['suppressions', 'list'])).stdout).toBe(
    '2026-11-22T08:00:00.000Z  manual       ada@example.com  (operator: asked by [address])\n',
  )
  const listed = JSON.parse((await run(['suppressions', 'list', '--format', 'json'])).stdout)
  const by = {
    at: '2026-11-22T08:00:00.000Z',
    cause: 'manual',
    source: 'operator',
    reason: 'asked by [address]',
  }
  expect(listed.suppressions).toEqual([{ address: 'ada@example.com', ...by }])
  expect(await run(['suppressions', 'remove', 'ada@example.com'])).toMatchObject({ code: 2 })
  for (const blank of ['', '  ', 'x'.repeat(201)])
    expect(await run(['suppressions', 'remove', 'ada@example.com', '--reason', blank])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/A reason of 1 to 200 characters is needed\.|--reason is empty/),
    })
  const reason = ['--reason', 'ada@example.com wants it back']
  expect(await run(['suppressions', 'remove', 'ada@example.com', ...reason])).toMatchObject({ code: 0 })
  expect(await run(['suppressions', 'remove', 'ada@example.com', ...reason])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('not suppressed'),
  })
  // The entries have the same millisecond, so they have no order.
  const lines = (await store.audit.list(10)).map(
    ({ action, who, place, details }) => `${action} by ${who} at ${place}: ${details}`,
  )
  expect(lines.sort()).toEqual([
    'suppress by ops at box-1: manual: asked by [address]',
    'unsuppress by ops at box-1: [address] wants it back',
  ])
  expect((await store.course.history('id-ada')).map(({ kind }) => kind)).toContain('released')
})

test('an address that an early build erased under a secret of links, which is the second by now, is known by its hash', async () => {
  const [now, before] = ['the-new-secret-of-thirty-two-bytes', 'the-old-secret-of-thirty-two-bytes']
  const { store, run } = await dataFolder({ env: { EMAIL_LINK_SECRET: `${now},${before}` } })
  await store.course.erase(erasureOf('kim', suppressionHash(before, 'kim@example.com'), NOW))
  const added = await run(['suppressions', 'add', 'kim@example.com', '--reason', 'asked'])
  expect(added.stdout).toMatch(/^this address was erased/)
  expect((await run(['suppressions', 'export'])).stdout).not.toContain('kim')
})

test('a provider’s export is imported once, and exported as it can be imported again', async () => {
  const { cwd, store, run } = await dataFolder()
  await writeFile(
    path.join(cwd, 'bounces.csv'),
    'email,status,created\nada@example.com,5.1.1,1795248000\nnot an address,5.1.1,1\ngrace@example.com,4.2.2,2\n',
  )
  const first = await run(['suppressions', 'import', 'bounces.csv', '--format', 'json'])
  expect(JSON.parse(first.stdout)).toEqual({ version: 1, added: 1, known: 0, skipped: 1, passing: 1 })
  expect((await run(['suppressions', 'import', 'bounces.csv'])).stdout).toMatch(/^0 added, 1 known/)
  const exported = (await run(['suppressions', 'export'])).stdout
  expect(exported).toBe(
    'address,cause,at,source,reason\r\nada@example.com,hard-bounce,2026-11-21T08:00:00.000Z,import,the provider lists the address as bounced\r\n',
  )
  await writeFile(path.join(cwd, 'again.csv'), exported)
  expect((await run(['suppressions', 'import', 'again.csv'])).stdout).toMatch(/^0 added, 1 known/)
  // Larger than an env file can be.
  await writeFile(
    path.join(cwd, 'long.csv'),
    `address,cause\nada@example.com,hard-bounce\n${`${' '.repeat(999)}\n`.repeat(5000)}`,
  )
  expect((await run(['suppressions', 'import', 'long.csv'])).stdout).toMatch(/^0 added, 1 known/)
  expect(await store.course.findById('id-grace')).toMatchObject({ state: 'confirmed' })
  await writeFile(path.join(cwd, 'plain.csv'), 'email\ngrace@example.com\n')
  expect(await run(['suppressions', 'import', 'plain.csv'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--cause'),
  })
  await run(['suppressions', 'import', 'plain.csv', '--cause', 'complaint'])
  await run(['suppressions', 'add', 'kim@example.com', '--cause', 'hard-bounce', '--reason', 'returned'])
  const { stdout } = await run(['suppressions', 'list'])
  for (const line of [/ complaint +grace@example\.com /, / hard-bounce +kim@example\.com /])
    expect(stdout).toMatch(line)
})

/** A delivery status notification as Postfix writes it. */
const dsn = ({
  to = 'course@example.com',
  recipient = 'ada@example.com',
  status = '5.1.1',
  messageId = 'unknown@example.com',
  original = 'ada@example.com',
} = {}) =>
  `From: MAILER-DAEMON@mx.example.net (Mail Delivery System)
To: ${to}
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B"

--B
Content-Type: text/plain

This is the mail system at host mx.example.net.

--B
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net

Final-Recipient: rfc822; ${recipient}
Action: failed
Status: ${status}
Diagnostic-Code: smtp; 550 ${status} No such user

--B
Content-Type: message/rfc822

From: Course <course@example.com>
To: ${original}
Message-ID: <${messageId}>
Subject: Day 1

Hello.

--B--
`.replaceAll('\n', '\r\n')

test('a bounce of a message that was sent to its recipient suppresses the address, once', async () => {
  const { store, run } = await dataFolder()
  const bounce = dsn({ messageId: 'lesson-of-ada@example.com' })
  expect(await run(['feedback'], bounce)).toEqual({
    code: 0,
    stdout: 'hard bounce: the address does not exist (5.1.1); 1 recorded\n',
    stderr: '',
  })
  expect(await run(['feedback', '-'], bounce)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/1 known already\n$/),
  })
  expect(await store.course.findById('id-ada')).toMatchObject({ state: 'unsubscribed' })
  expect(await store.feedback.find('ada@example.com')).toMatchObject({ suppression: { source: 'pipe' } })
  // A mail of no course is known by its record.
  const [recipient = ''] = recipientHashes(ADDRESS_KEY, 'kim@example.com')
  await store.sentMail.begin({ key: 'k', now: NOW, recipient, caps: [], content: 'c' })
  await store.sentMail.recordSent({ key: 'k', id: 'mail-of-kim@example.com', now: NOW })
  const other = dsn({ recipient: 'kim@example.com', messageId: 'mail-of-kim@example.com' })
  expect((await run(['feedback'], other)).stdout).toMatch(/1 recorded\n$/)
  const count = { at: NOW, source: 'postmark', domain: 'other' }
  await store.sending.count([
    { ...count, kind: 'sent', count: 60 },
    { ...count, kind: 'complaint', count: 5 },
  ])
  const next = dsn({ recipient: 'grace@example.com', messageId: 'lesson-of-grace@example.com' })
  expect((await run(['feedback'], next)).stderr).toMatch(/^courses are paused: 5 of 60 messages/)
})

test('ignores a bounce that anybody could have written', async () => {
  const { store, run } = await dataFolder({
    env: { MAILER_BOUNCE_ADDRESS: 'bounce@example.com' },
  })
  for (const forged of [
    dsn(),
    // The Message-ID of somebody else's lesson.
    dsn({ messageId: 'lesson-of-grace@example.com' }),
    dsn({ to: 'bounce+aaaaaaaaaaaaaaaaaaaaaaaaaa@example.com' }),
  ])
    expect(await run(['feedback'], forged)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^not about our mail: .*; 1 without proof that we sent it\n$/),
    })
  expect(await store.feedback.listSuppressed(10)).toEqual([])
})

test('believes a bounce to the recipient’s own envelope sender, even after forwarding', async () => {
  const { store, run } = await dataFolder({
    env: {
      MAILER_API_KEY: 'key-of-the-mailer',
      MAILER_FROM: 'course@example.com',
      MAILER_SMTP_URL: 'smtp://127.0.0.1:25',
      MAILER_BOUNCE_ADDRESS: 'bounce@example.com',
    },
  })
  const sender = createBounceAddresses('bounce@example.com', ADDRESS_KEY).senderFor('Ada@example.com')
  expect(sender).toMatch(/^bounce\+[a-z2-7]{26}@example\.com$/)
  const forwarded = dsn({ to: sender.toUpperCase(), recipient: 'ada@elsewhere.example' })
  expect(await run(['feedback'], forwarded)).toMatchObject({ code: 0 })
  expect(await store.feedback.find('ada@example.com')).toMatchObject({
    suppression: { cause: 'hard-bounce' },
  })
  // Her token proves nothing about another address.
  expect(
    await run(['feedback'], dsn({ to: sender, recipient: 'grace@example.com', original: 'x@y.example' })),
  ).toMatchObject({ code: 1 })
})

test('reports a message that is not a bounce as not understood or as nothing to record', async () => {
  const { run } = await dataFolder()
  expect(await run(['feedback'], 'Subject: hello\r\n\r\nHow are you?\r\n')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^not understood: /),
  })
  expect(
    await run(['feedback'], 'Subject: away\r\nAuto-Submitted: auto-replied\r\n\r\nBack soon.\r\n'),
  ).toMatchObject({
    code: 0,
    stdout: 'nothing to record: it is an automatic reply\n',
  })
  expect(await run(['feedback', 'no-such-file.eml'])).toMatchObject({ code: 2 })
})

test('the status of feedback gives rates by day, by source and by recipient domain, and says that courses are paused', async () => {
  const { store, run } = await dataFolder()
  expect(await run(['feedback', 'status'])).toEqual({
    code: 0,
    stdout: 'nothing was sent or reported in this time\n',
    stderr: '',
  })
  const DAY = 24 * 60 * 60 * 1000
  const count = (kind: CountedKind, count: number, parts = {}) => ({
    ...{ kind, count, source: 'postmark', domain: 'other', at: NOW },
    ...parts,
  })
  await store.sending.count([
    count('sent', 200, { source: 'api', domain: 'gmail.com', at: NOW - DAY }),
    count('sent', 100, { source: 'api' }),
    count('delivered', 190, { domain: 'gmail.com', at: NOW - DAY }),
    count('hard-bounce', 3, { domain: 'gmail.com', at: NOW - DAY }),
    count('hard-bounce', 2),
    count('soft-bounce', 5),
    count('complaint', 1, { domain: 'gmail.com' }),
    count('unsubscribed', 4),
    // Beyond the seven days.
    count('sent', 999, { source: 'api', at: NOW - 7 * DAY }),
  ])
  expect((await run(['feedback', 'status'])).stdout).toBe(
    `day         sent  delivered  hard bounces  soft bounces  complaints  unsubscribed
2026-11-21   200        190     3 (1.50%)             0           0             0
2026-11-22   100          0     2 (2.00%)     5 (5.00%)   1 (1.00%)             4

source    sent  delivered  hard bounces  soft bounces  complaints  unsubscribed
api        300          0             0             0           0             0
postmark     0        190     5 (1.67%)     5 (1.67%)   1 (0.33%)             4

recipients  sent  delivered  hard bounces  soft bounces  complaints  unsubscribed
gmail.com    200        190     3 (1.50%)             0   1 (0.50%)             0
other        100          0     2 (2.00%)     5 (5.00%)           0             4
`,
  )
  await store.sending.count([count('complaint', 4)])
  await store.sending.check(NOW)
  expect((await run(['feedback', 'status', '--days', '1'])).stdout).toMatch(
    /^courses are paused: 5 of 100 messages of the last day were reported as spam[^\n]*; platformctl course resume goes on\n\nday/,
  )
  const json = JSON.parse((await run(['feedback', 'status', '--days', '1', '--format', 'json'])).stdout)
  expect(json).toMatchObject({ version: 1, paused: { at: NOW } })
  expect(json.counts.map(({ day }: { day: string }) => day)).not.toContain('2026-11-21')
  expect(json.counts).toContainEqual({
    day: '2026-11-22',
    kind: 'complaint',
    source: 'postmark',
    domain: 'gmail.com',
    count: 1,
  })
})

test('course show tells what happened to a person in order, feedback that came late included', async () => {
  const { cwd, store, run } = await dataFolder()
  await run(['feedback'], dsn({ messageId: 'lesson-of-ada@example.com' }))
  await run(['suppressions', 'remove', 'ada@example.com', '--reason', 'a new mailbox'])
  await applyFeedback({
    feedback: {
      events: [
        {
          id: 'late',
          kind: 'soft-bounce',
          address: 'ada@example.com',
          messageId: 'lesson-of-ada@example.com',
          at: 4,
          reason: 'the mailbox does not accept mail (4.2.2)',
        },
      ],
      ignored: 0,
    },
    source: 'postmark',
    store: store.feedback,
    sending: store.sending,
    erasureHashes: () => [],
    now: NOW + 1,
  })
  const { code, stdout } = await runIn(['course', 'show', 'ada@example.com', '--data', '.'], { cwd, clock })
  expect(code).toBe(0)
  const history = stdout.split('\n\n').at(-1)?.trim().split('\n')
  expect(history?.map((line) => line.slice(0, 80).replace(/^(\S+) {2}/, '$1 '))).toEqual([
    '1970-01-01T00:00:00.002Z confirmed, enrolment 1',
    expect.stringMatching(/^1970-01-01T00:00:00.003Z day 1, attempt/),
    expect.stringMatching(/^1970-01-01T00:00:00.004Z soft bounce reported by postmark: the mailbox/),
    expect.stringMatching(/^2026-11-22T08:00:00.000Z hard bounce reported by pipe: the address does not/),
    expect.stringMatching(/^2026-11-22T08:00:00.000Z taken off the suppression list by operator: a new/),
  ])
})
