import { expect } from 'vitest'
import type { Catalog } from '../../src/core/course/catalog.ts'
import type { CourseDefinition } from '../../src/core/course/definition.ts'
import { type CourseOptions, openCourse } from '../../src/core/course/open.ts'
import type { CourseStore } from '../../src/core/course/store.ts'
import { DAY_MS } from '../../src/core/durations.ts'
import { silentLog, systemClock, systemRandom, type Timer } from '../../src/core/host.ts'
import type { Message, Outcome } from '../../src/core/mail/mailer.ts'
import { openMailer } from '../../src/core/mail/open.ts'
import type { CompiledMails } from '../../src/core/mail/template.ts'
import { secret } from '../../src/core/secret.ts'
import type { VirtualTime } from '../simulation/virtual-time.ts'
import { begin, compiledMails, catalog as DEFAULT } from './learning.ts'
import { addressOf, openTestStore, type StoreKind } from './stores.ts'
import { testTransport } from './test-transport.ts'

export const START = Date.UTC(2026, 2, 28)
export const ADA = { spelling: 'Ada@example.com', identity: 'ada@example.com' }

/** This many lessons of the default course. */
export const lessons = (count: number) =>
  Array.from({ length: count }, (_, index) => `course-day-${index + 1}`)

/** A course of one's own with a lesson a day, unless the parts say otherwise. */
export const courseNamed = (id: string, parts: Partial<CourseDefinition> = {}): CourseDefinition => ({
  id,
  title: id,
  lessons: lessons(3),
  cadence: { kind: 'every', ms: DAY_MS },
  spacingMs: 0,
  follow: 'start',
  ...parts,
})

export function linkOf(message: Message | undefined): { s: string; t: string } {
  const url = new URL(/<(.*)>/.exec(message?.headers['List-Unsubscribe'] ?? '')?.[1] ?? '')
  return { s: url.searchParams.get('s') ?? '', t: url.searchParams.get('t') ?? '' }
}

export const tokenIn = (message: Message | undefined) => /token=([\w-]+)/.exec(message?.text ?? '')?.[1] ?? ''

/** A course over a real store, with people whose first lesson is due and a provider that answers as told. */
export async function courseWith(
  people: number,
  {
    kind = 'sqlite',
    siteUrl = 'https://www.example.com',
    transportKind = 'test',
    time,
    patienceMs,
    leaseClock: leases = time?.elapsed,
    catalog = DEFAULT,
  }: {
    readonly kind?: StoreKind
    readonly siteUrl?: string
    readonly transportKind?: string
    /** With virtual time, time only passes when the test says so. Without it, the wall clock stands still and waiting is real. */
    readonly time?: VirtualTime
    readonly patienceMs?: number
    /** `standing`: leases end by the clock that stands still. */
    readonly leaseClock?: (() => number) | 'standing' | undefined
    readonly catalog?: Catalog
  } = {},
) {
  const address = await addressOf(kind)
  let now = time?.clock.now() ?? START
  const leaseClock = leases === 'standing' ? () => now : leases
  const store = await openTestStore(address, leaseClock)
  const messages: Message[] = []
  let answer: (message: Message, signal?: AbortSignal) => Outcome | Promise<Outcome> = (message) => ({
    kind: 'sent',
    id: message.key,
  })
  const mailer = (compiled: () => Promise<CompiledMails> = compiledMails) =>
    openMailer({
      compiled,
      mail: undefined,
      from: { name: undefined, address: 'course@example.com' },
      transport: {
        ...testTransport(async (message, signal) => {
          messages.push(message)
          return answer(message, signal)
        }),
        kind: transportKind,
        ...(patienceMs !== undefined && { patienceMs }),
      },
    })
  const open = (
    on: CourseStore,
    {
      site = siteUrl,
      aheadMs = 0,
      isPaused,
      catalog: courses = catalog,
      timer = time?.clock ?? systemClock,
      more = {},
    }: {
      readonly site?: string
      readonly aheadMs?: number
      readonly catalog?: Catalog
      readonly isPaused?: () => Promise<boolean>
      readonly timer?: Timer
      /** Overrides of the options that the course is opened with. */
      readonly more?: Partial<CourseOptions>
    } = {},
  ) =>
    openCourse({
      catalog: courses,
      store: on,
      persistent: true,
      limit: 100,
      mailer: mailer(),
      clock: {
        now: () => (time ? time.clock.now() : now) + aheadMs,
        monotonic: () => now,
        sleep: async () => {},
      },
      timer,
      ...(isPaused && { isPaused }),
      random: systemRandom,
      log: silentLog,
      siteUrl: site,
      linkKey: secret('a key for links in tests only'),
      ...more,
    })
  /** Somebody who asked for the course and confirmed, without a mail. */
  const join = async (
    identity: string,
    { id = identity, course = 'quantum', at = now, begins = begin, confirms = true } = {},
  ) => {
    const tokenHash = `hash of ${id} at ${now}`
    await store.course.requestConfirmation({ course, identity, address: identity, id, tokenHash, now })
    if (confirms) await store.course.confirm({ begin: begins, tokenHash, now: at })
    return tokenHash
  }
  // One after the other in time, so that there is a first and a last.
  for (let n = 0; n < people; n += 1) {
    const identity = `p${n}@example.com`
    const person = { course: 'quantum', identity, mailboxKey: identity, address: identity }
    await store.course.enrol({ ...person, id: `person-${n}`, begin, now: now - people + n })
  }
  // Load the lazy modules now: virtual time would not wait for them.
  await compiledMails()
  const course = open(store.course)
  return {
    course,
    store,
    address,
    messages,
    open,
    /** The same provider, with other mails. */
    mailer,
    join,
    /** Asks for a course, and waits until the mail has left. */
    async subscribe(who: Parameters<typeof course.subscribe>[0] = ADA, by = course) {
      const answer = await by.subscribe(who)
      await new Promise((resolve) => setImmediate(resolve))
      await by.close()
      return answer
    },
    async confirmed(who = ADA) {
      await this.subscribe(who)
      expect(await course.confirm(this.token())).toBe('confirmed')
      return this
    },
    token: () => tokenIn(messages.at(-1)),
    link: () => linkOf(messages.at(-1)),
    now: () => now,
    answer: (next: typeof answer) => {
      answer = next
    },
    pass: (ms: number) => {
      now += ms
    },
    /** A second process on the same store. */
    anotherStore: () => openTestStore(address, leaseClock),
    rows: () => Promise.all(Array.from({ length: people }, (_, n) => store.course.findById(`person-${n}`))),
  }
}
