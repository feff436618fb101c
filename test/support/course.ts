import type { Catalog } from '../../src/core/course/catalog.ts'
import { type CourseOptions, openCourse } from '../../src/core/course/open.ts'
import type { CourseStore } from '../../src/core/course/store.ts'
import { silentLog, systemClock, systemRandom, type Timer } from '../../src/core/host.ts'
import type { Message, Outcome } from '../../src/core/mail/mailer.ts'
import { openMailer } from '../../src/core/mail/open.ts'
import { secret } from '../../src/core/secret.ts'
import type { VirtualTime } from '../simulation/virtual-time.ts'
import { begin, compiledMails, catalog as DEFAULT } from './learning.ts'
import { addressOf, openTestStore, type StoreKind } from './stores.ts'

export const START = Date.UTC(2026, 2, 28)

/** A course over a real store, with people whose first lesson is due and a provider that answers as told. */
export async function courseWith(
  people: number,
  {
    kind = 'sqlite',
    siteUrl = 'https://www.example.com',
    transportKind = 'test',
    time,
    patienceMs,
    leaseClock = time?.elapsed,
    catalog = DEFAULT,
  }: {
    readonly kind?: StoreKind
    readonly siteUrl?: string
    readonly transportKind?: string
    /** With virtual time, time only passes when the test says so. Without it, the wall clock stands still and waiting is real. */
    readonly time?: VirtualTime
    readonly patienceMs?: number
    readonly leaseClock?: (() => number) | undefined
    readonly catalog?: Catalog
  } = {},
) {
  const address = await addressOf(kind)
  let now = time?.clock.now() ?? START
  const store = await openTestStore(address, leaseClock)
  const messages: Message[] = []
  let answer: (message: Message, signal?: AbortSignal) => Outcome | Promise<Outcome> = (message) => ({
    kind: 'sent',
    id: message.key,
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
      mailer: openMailer({
        compiled: compiledMails,
        mail: undefined,
        from: { name: undefined, address: 'course@example.com' },
        transport: {
          kind: transportKind,
          ...(patienceMs !== undefined && { patienceMs }),
          send: async (message, signal) => {
            messages.push(message)
            return answer(message, signal)
          },
          verify: async () => {},
          close: async () => {},
        },
      }),
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
  for (let n = 0; n < people; n += 1) {
    await store.course.requestConfirmation({
      course: 'quantum',
      identity: `p${n}@example.com`,
      address: `p${n}@example.com`,
      id: `person-${n}`,
      tokenHash: `hash-${n}`,
      now,
    })
    // One after the other, so that there is a first and a last.
    await store.course.confirm({ begin, tokenHash: `hash-${n}`, now: now - people + n })
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
    linkOf: (message: Message | undefined) => {
      const url = new URL(/<(.*)>/.exec(message?.headers['List-Unsubscribe'] ?? '')?.[1] ?? '')
      return { s: url.searchParams.get('s') ?? '', t: url.searchParams.get('t') ?? '' }
    },
  }
}
