import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type Catalog, openCatalog } from '../../src/core/course/catalog.ts'
import type { Plan } from '../../src/core/course/definition.ts'
import { DAY_MS, HOUR_MS } from '../../src/core/durations.ts'
import type { StoreAddress } from '../../src/core/env/settings.ts'
import { openStore } from '../../src/core/store/open.ts'
import { loadPlatform } from '../../src/platform/load-platform.ts'
import type { Delivery } from './sinks.ts'

const LESSONS = 4
/** German has no translation of this one. */
const UNTRANSLATED = 3
/** A course with a spacing sends what is overdue once an hour. */
export const LONGEST_SPACING_MS = HOUR_MS
const CADENCES = [
  { every: '1d' },
  { at: '09:00', zone: 'subscriber', on: ['mon', 'thu'] },
  { every: '15m', spacing: '10m' },
]
const LANGUAGES = [undefined, 'de', 'fr', 'de-AT'] as const
const ZONES = ['Europe/Berlin', 'America/New_York', undefined, 'Asia/Kathmandu'] as const

/** A platform with courses of its own, in English and German. */
export interface School {
  /** Its definition. */
  readonly file: string
  readonly catalog: Catalog
  /** Lessons that one person gets in all. */
  readonly lessons: number
}

/** Writes the definition of a school with so many courses, whose cadences take turns. */
export async function writeSchool(folder: string, courses: number): Promise<School> {
  const ids = Array.from({ length: courses }, (_, n) => `course-${n + 1}`)
  for (const id of ids)
    for (const language of ['en', 'de']) {
      const lessons = path.join(folder, id, ...(language === 'en' ? [] : [language]))
      await mkdir(lessons, { recursive: true })
      for (let n = 1; n <= LESSONS; n += 1)
        if (language === 'en' || n !== UNTRANSLATED)
          await writeFile(
            path.join(lessons, `${n}-lesson.md`),
            `---\nsubject: ${id} ${n} ${language}\n---\n\n# ${id}\n\nLesson ${n}.\n`,
          )
    }
  const file = path.join(folder, 'platform.config.json')
  const definition = {
    preset: 'base',
    name: 'School',
    mails: './mails',
    courses: Object.fromEntries(
      ids.map((id, n) => [id, { lessons: `./${id}`, ...CADENCES[n % CADENCES.length] }]),
    ),
  }
  await mkdir(path.join(folder, 'mails'))
  await writeFile(file, JSON.stringify(definition))
  const platform = await loadPlatform({ folder, file })
  return {
    file,
    catalog: await openCatalog(platform.courses, { texts: platform.mails.texts }),
    lessons: courses * LESSONS,
  }
}

/** People who are in every course, began so long ago that all lessons are due, and differ in language and zone. */
export async function enrolEverywhere(
  { catalog }: School,
  { address, people, addressOf }: { address: StoreAddress; people: number; addressOf: (n: number) => string },
): Promise<void> {
  const store = await openStore(address)
  const begin = await catalog.begin()
  for (let n = 0; n < people; n += 1)
    for (const { id } of catalog.courses)
      await store.course.enrol({
        begin,
        course: id,
        identity: addressOf(n),
        mailboxKey: addressOf(n),
        address: addressOf(n),
        id: `${id}-person-${n}`,
        language: LANGUAGES[n % LANGUAGES.length],
        timeZone: ZONES[n % ZONES.length],
        now: Date.now() - 40 * DAY_MS,
      })
  await store.close()
}

/** One sentence for each message that came in a wrong language, out of order, or before its spacing had passed. */
export function misplaced(
  { catalog }: School,
  deliveries: readonly Delivery[],
  { numberOf, lifeMs }: { numberOf: (to: string) => number; lifeMs: number },
): readonly string[] {
  const faults: string[] = []
  const last = new Map<string, { day: number; at: number }>()
  for (const { to, subject, at: arrivedAt, life } of deliveries) {
    const [, course = '', number, language] = /^(course-\d+) (\d+) (\w+)$/.exec(subject) ?? []
    const plan: Plan | undefined = catalog.find(course)
    if (plan === undefined) {
      faults.push(`${to} was sent “${subject}”, which is no lesson`)
      continue
    }
    const day = Number(number)
    const german = LANGUAGES[numberOf(to) % LANGUAGES.length]?.startsWith('de') && day !== UNTRANSLATED
    if (language !== (german ? 'de' : 'en')) faults.push(`${to} was sent “${subject}” in the wrong language`)
    const at = arrivedAt + life * lifeMs
    const before = last.get(`${to} ${course}`) ?? { day: 0, at: Number.NEGATIVE_INFINITY }
    // Over SMTP a message in flight at a kill may come again, and counts as the same lesson.
    if (day !== before.day && day !== before.day + 1)
      faults.push(`${to} was sent “${subject}” after ${before.day}`)
    else if (day > before.day && at - before.at < (plan.spacingMs && LONGEST_SPACING_MS))
      faults.push(`${to} was sent “${subject}” ${Math.round((at - before.at) / 1000)} s after the one before`)
    last.set(`${to} ${course}`, { day, at })
  }
  return faults
}
