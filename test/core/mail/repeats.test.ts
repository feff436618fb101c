import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { NOTICES } from '../../../src/core/course/definition.ts'
import type { CourseOptions } from '../../../src/core/course/open.ts'
import { DAY_MS, HOUR_MS, KEY_LIFE_MS } from '../../../src/core/durations.ts'
import { silentLog, systemClock } from '../../../src/core/host.ts'
import { sendAgain } from '../../../src/core/mail/send-once.ts'
import { secret } from '../../../src/core/secret.ts'
import { openPlatform } from '../../../src/daemon/platform.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { byHand } from '../../support/by-hand.ts'
import { ADA, courseWith } from '../../support/course.ts'
import { compiledMails } from '../../support/learning.ts'
import { EXAM, mailerTo, WELCOME } from '../../support/mailers.ts'
import { serveBodies } from '../../support/servers.ts'
import { addressOf, KEPT, openTestStore } from '../../support/stores.ts'

/**
 * A mail API that delivers once under a key, and refuses the key with other bytes, and any mail of `barred`; its first
 * answer is lost.
 */
async function provider(barred?: string) {
  const delivered = new Map<string, string>()
  const bodies: string[] = []
  const statuses: number[] = []
  const url = await serveBodies((body, response, { headers }) => {
    const key = String(headers['idempotency-key'])
    const isOther = (delivered.get(key) ?? body) !== body
    bodies.push(body)
    const isBarred = barred !== undefined && body.includes(barred)
    if (!isOther && !isBarred) delivered.set(key, body)
    if (bodies.length === 1) return void response.destroy()
    const status = isBarred ? 403 : isOther ? 409 : 200
    statuses.push(status)
    response.writeHead(status).end(`{"id":"${key}"}`)
  })
  return { url, delivered, bodies, statuses }
}

const OLD = secret('a key for links in tests only')
const NEW = { linkKey: secret('another key for links'), oldLinkKeys: [OLD] }
const SENDERS = {
  from: { name: 'Course', address: 'course@example.com' },
  replyTo: { name: undefined, address: 'help@example.com' },
}
const OTHERS = {
  from: { name: 'School', address: 'school@mail.example.org' },
  replyTo: { name: undefined, address: 'desk@example.org' },
}

/** Before, an answer is lost; after, the secret is rotated, and site, sender and Reply-To are others. */
async function world(kind: (typeof KEPT)[number]) {
  const it = await courseWith(0, { kind })
  const { url, ...seen } = await provider()
  const warned: string[] = []
  const notices: CourseOptions['notices'] = {
    isSilent: async () => false,
    slots: ({ kind, subject }) => ({
      title: `${kind} ${subject}`,
      text: 'text',
      when: `${warned.length} ${it.now()}`,
      statusUrl: 'https://a.example/',
    }),
  }
  const log = { ...silentLog, warn: (event: string) => void warned.push(event) }
  const open = (senders: typeof SENDERS, site: string, more: Partial<CourseOptions> = {}) =>
    it.open(it.store.course, { site, more: { mailer: mailerTo(url, senders), notices, log, ...more } })
  return {
    ...it,
    ...seen,
    warned,
    before: open(SENDERS, 'https://www.example.com'),
    after: (keys: Partial<CourseOptions> = NEW) => open(OTHERS, 'https://learn.example.org', keys),
  }
}
type World = Awaited<ReturnType<typeof world>>

/** Each is a way to make the platform send one mail. */
const MAILS: readonly [what: string, first: (it: World) => Promise<unknown>][] = [
  [
    'a lesson',
    async ({ before }) => {
      await before.enrol({ ...ADA, language: 'de' })
      await before.dispatch({})
    },
  ],
  ['a confirmation', (it) => it.subscribe({ ...ADA, language: 'de' }, it.before)],
  [
    'a notice',
    async ({ before, store, now }) => {
      await before.enrol({ ...ADA, course: NOTICES })
      await store.incidents.announce(
        { id: 'maintenance', text: 'Maintenance', from: now(), until: now() + DAY_MS, by: 'ops' },
        now(),
      )
      await before.deliverMessages()
    },
  ],
]

async function repeat({ pass, after }: World, keys?: Partial<CourseOptions>) {
  pass(HOUR_MS)
  const course = after(keys)
  await course.dispatch({})
  await course.deliverMessages()
  await course.close()
}

describe.each(KEPT)('over a provider that honors keys, on %s,', (kind) => {
  test.each(MAILS)(
    '%s whose answer was lost is repeated with the same bytes after its secret was rotated and its site and senders changed',
    async (_, first) => {
      const it = await world(kind)
      await first(it)
      expect(it.bodies).toHaveLength(1)
      await repeat(it)
      expect(it.statuses).toEqual([200])
      expect(it.bodies[1]).toBe(it.bodies[0])
    },
  )

  test.each(MAILS.slice(0, 2))(
    '%s whose key of links is gone is repeated with links that work, once at most, and the log says so',
    async (_, first) => {
      const it = await world(kind)
      await first(it)
      it.delivered.clear()
      await repeat(it, { linkKey: NEW.linkKey })
      expect(it.statuses).toEqual([200])
      expect([...it.delivered.values()]).toEqual([it.bodies[1]])
      expect(it.bodies[1]).toContain('https://learn.example.org/')
      expect(it.warned).toContain('mail_repeat_differs')
    },
  )

  test('a lesson that an operator sends again after the provider forgot its key has the sender of now', async () => {
    const it = await world(kind)
    await MAILS[0]?.[1](it)
    it.pass(KEY_LIFE_MS)
    it.delivered.clear()
    await it.after().dispatch({})
    expect(it.bodies).toHaveLength(1)
    expect(await it.after().resolveAll('retry')).toBe(1)
    await repeat(it)
    expect(it.statuses).toEqual([200])
    expect(JSON.parse(it.bodies[1] ?? '')).toMatchObject({ from: '"School" <school@mail.example.org>' })
  })

  test.each(MAILS)('the store keeps no token of %s', async (_, first) => {
    const it = await world(kind)
    await first(it)
    const tokens = [...(it.bodies[0] ?? '').matchAll(/[?&;](?:t|token)=([\w-]{40,})/g)].map(([, one]) => one)
    expect(tokens.length).toBeGreaterThan(0)
    if (it.address === undefined) throw new TypeError('a store in memory')
    const kept = JSON.stringify(await byHand(it.address, 'SELECT * FROM sent_mail'))
    for (const token of tokens) expect(kept).not.toContain(token)
  })
})

test('the content of a mail is kept before its unknown outcome is reported, so that a repeat sends the same bytes', async () => {
  const kept: string[] = []
  const store = {
    async keepTexts(texts: object) {
      await nextTurn()
      kept.push(...Object.keys(texts))
    },
    keptText: async () => undefined,
  }
  const host = { store, mailer: mailerTo('http://127.0.0.1:9/'), clock: systemClock }
  const untried = { key: WELCOME.about, tried: undefined }
  await sendAgain(host, WELCOME, untried, async () => ({ kind: 'unknown', reason: 'no answer' }))
  expect(kept).toContain(`tried ${WELCOME.about}`)
})

/** A program on one store, with a mail under one key: its platform with a sender, and with another subject. */
async function program(url: string) {
  const store = await openTestStore(await addressOf('sqlite'))
  let now = Date.UTC(2026, 10, 22)
  return {
    pass: (ms: number) => {
      now += ms
    },
    open({
      from,
      replyTo = 'help@example.com',
      durable = true,
      subject = '',
    }: {
      from: string
      replyTo?: string
      durable?: boolean
      subject?: string
    }) {
      const compiled = async () => {
        const all = await compiledMails()
        const mail = all['exam-passed']
        return { ...all, 'exam-passed': { ...mail, subject: [subject, ...mail.subject] } }
      }
      const platform = openPlatform({
        env: {
          MAILER_API_KEY: 'key-for-tests-only',
          MAILER_API_URL: url,
          MAILER_FROM: from,
          MAILER_REPLY_TO: replyTo,
        },
        platform: { ...learning, mails: { ...learning.mails, compiled } },
        store,
        clock: { ...systemClock, now: () => now },
      })
      onTestFinished(() => platform.close())
      return {
        deliver: async () => (await platform.course()).deliverMessages(),
        send: () =>
          platform.sendEmail({
            template: 'exam-passed',
            to: 'ada@example.com',
            slots: EXAM,
            key: 'exam.1',
            durable,
          }),
      }
    },
  }
}

test.each([true, false])(
  'a mail of a program whose answer was lost keeps its sender and Reply-To; durable: %s',
  async (durable) => {
    const { url, bodies, statuses } = await provider()
    const it = await program(url)
    const before = it.open({ from: 'Course <course@example.com>', durable })
    await before.send()
    await before.deliver()
    expect(bodies).toHaveLength(1)
    it.pass(HOUR_MS)
    const after = it.open({ from: 'School <school@mail.example.org>', replyTo: 'desk@example.org', durable })
    if (!durable) await after.send()
    await after.deliver()
    expect(statuses).toEqual([200])
    expect(bodies[1]).toBe(bodies[0])
  },
)

test('a mail that was not taken has the sender of now if the provider no longer allows that of then', async () => {
  const { url, delivered, statuses } = await provider('course@example.com')
  const it = await program(url)
  const before = it.open({ from: 'course@example.com' })
  await before.send()
  await before.deliver()
  it.pass(HOUR_MS)
  await it.open({ from: 'school@example.org' }).deliver()
  expect(statuses).toEqual([403, 200])
  expect([...delivered.values()][0]).toContain('school@example.org')
})

test('a mail that is stored anew under its key is repeated with the text of then', async () => {
  const bodies: string[] = []
  const it = await program(
    await serveBodies((body, response) => {
      bodies.push(body)
      response.destroy()
    }),
  )
  const first = it.open({ from: 'course@example.com' })
  await first.send()
  for (let hours = 0; hours < 24; hours += 1) {
    await first.deliver()
    it.pass(HOUR_MS)
  }
  const attempts = bodies.length
  const anew = it.open({ from: 'course@example.com', subject: 'Anew: ' })
  await anew.send()
  for (let times = 0; times < 2; times += 1) {
    await anew.deliver()
    it.pass(HOUR_MS)
  }
  const [one, two] = bodies.slice(attempts)
  expect(one).toContain('Anew: ')
  expect(two).toBe(one)
})
