import type { CourseDefinition } from '../../src/core/course/definition.ts'
import type { LessonText, LessonTexts } from '../../src/core/mail/definition.ts'
import type { CompiledMails } from '../../src/core/mail/template.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { compiledMails } from '../support/learning.ts'
import { seeded } from './seeded.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** With summer time, without, by half an hour (Lord Howe), at midnight (Santiago), and with odd offsets (Chatham). */
export const ZONES = [
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'America/Santiago',
  'Pacific/Chatham',
  'Asia/Kolkata',
] as const
/** What another build has let through, and this one does not know: UTC counts. */
export const UNKNOWN_ZONE = 'PST'
/** `fr`: a language that no lesson is in. */
export const LANGUAGES = ['en', 'de', 'de-AT', 'fr'] as const

/** The courses that the platform has from a moment on: what a deployment puts in place. */
export interface Release {
  /** Milliseconds after the start. */
  readonly at: number
  readonly courses: readonly CourseDefinition[]
  /** A mistake that the next release takes back: courses that everybody follows are shorter. */
  readonly isRollback?: boolean
}

export interface Curriculum {
  readonly releases: readonly Release[]
  /** The mails of a process that started with this release: it knows no lesson that the release does not have. */
  readonly compiled: (release: number) => Promise<CompiledMails>
  /** Undefined: nothing keeps the texts of the preset. */
  readonly texts: (release: number) => Promise<LessonTexts> | undefined
  /** The subject of a release's lesson for a subscriber; undefined if the texts of the preset do not say. */
  readonly subjectOf: (lesson: string, language: string | undefined, release: number) => string | undefined
}

/** The courses of a scenario: those of the default platform, or as many as asked for, drawn and then edited. */
export async function drawCurriculum(seed: number, courses: number, days: number): Promise<Curriculum> {
  if (courses === 0)
    return {
      releases: [{ at: 0, courses: learning.courses }],
      compiled: async () => await compiledMails(),
      texts: () => undefined,
      subjectOf: () => undefined,
    }
  const random = seeded(seed ^ 0xc0de)
  const names = new Set<string>()
  const lesson = (course: string) => {
    const name = `${course}-lesson${names.size}`
    names.add(name)
    return name
  }
  const cadence = (): CourseDefinition['cadence'] =>
    random.oneIn(2)
      ? { kind: 'every', ms: random.pick([3 * HOUR, 12 * HOUR, DAY, DAY, DAY, 36 * HOUR, 2 * DAY]) }
      : {
          kind: 'at',
          minute: random.pick([0, 2 * 60 + 30, 2 * 60 + 30, 9 * 60, 23 * 60 + 45]),
          zone: random.oneIn(2) ? undefined : random.pick(ZONES),
          weekdays: random.oneIn(2)
            ? []
            : random.pick([
                [1, 2, 3, 4, 5],
                [6, 7],
                [1, 3, 5, 7],
              ]),
        }
  const spacing = () => (random.oneIn(2) ? 0 : random.pick([HOUR, 20 * HOUR, 30 * HOUR]))
  const first = Array.from({ length: courses }, (_, n): CourseDefinition => {
    const id = `course${n + 1}`
    return {
      id,
      title: id,
      lessons: Array.from({ length: random.pick([1, 3, 7, 7, 10, 14, 14]) }, () => lesson(id)),
      cadence: cadence(),
      spacingMs: spacing(),
      follow: random.oneIn(3) ? 'latest' : 'start',
    }
  })
  const edited = (course: CourseDefinition): CourseDefinition => {
    const lessons = [...course.lessons]
    const at = random.between(0, lessons.length - 1)
    if (random.oneIn(2)) lessons.splice(at, 0, lesson(course.id))
    else if (lessons.length > 1) lessons.splice(at, 1)
    if (random.oneIn(3)) lessons.reverse()
    return {
      ...course,
      lessons,
      ...(random.oneIn(3) && { cadence: cadence() }),
      ...(random.oneIn(3) && { spacingMs: spacing() }),
    }
  }
  const releases: Release[] = [{ at: 0, courses: first }]
  let courseList: readonly CourseDefinition[] = first
  for (let left = random.between(0, 2); left > 0; left -= 1) {
    const before = releases.at(-1)?.at ?? 0
    const at = before + random.between(6 * HOUR, (days * DAY) / 2)
    courseList = courseList.map((course) => (random.oneIn(2) ? edited(course) : course))
    // By mistake a deployment leaves a course out, and the next one brings it back.
    const gone = courses > 1 && random.oneIn(4)
    if (gone) {
      releases.push({ at, courses: courseList.slice(0, -1) })
      releases.push({ at: at + random.between(HOUR, DAY), courses: courseList })
    } else releases.push({ at, courses: courseList })
  }
  // Drawn apart, too: for some hours, the release of long ago with fewer lessons runs.
  const back = seeded(seed ^ 0xbac)
  if (back.oneIn(2)) {
    const at = (releases.at(-1)?.at ?? 0) + back.between(6 * HOUR, 5 * DAY)
    const shorter = courseList.map((course) =>
      course.follow === 'latest' && course.lessons.length > 1
        ? { ...course, lessons: course.lessons.slice(0, back.between(1, course.lessons.length - 1)) }
        : course,
    )
    releases.push({ at, courses: shorter, isRollback: true })
    releases.push({ at: at + back.between(HOUR, 2 * DAY), courses: courseList })
  }
  // Drawn apart, so that the courses of a seed stay as they are. Some have no translation, or get it later, or lose it.
  const texts = seeded(seed ^ 0x7e87)
  const all = [...names]
  const german = new Map(all.map((name) => [name, !texts.oneIn(3)]))
  const revision = new Map(all.map((name) => [name, 1]))
  const shared = await compiledMails()
  const editions = releases.map(({ courses }, index) => {
    for (const name of all) {
      if (index > 0 && texts.oneIn(4)) revision.set(name, (revision.get(name) ?? 1) + 1)
      if (index > 0 && texts.oneIn(8)) german.set(name, german.get(name) === false)
    }
    const there = courses.flatMap(({ lessons }) => lessons)
    return new Map(
      there.map((name) => {
        const original = `${name} r${revision.get(name)}`
        const translated: Record<string, string> =
          german.get(name) === true ? { de: `${original} auf Deutsch` } : {}
        return [name, { '': original, ...translated }] as const
      }),
    )
  })
  const textsAt = editions.map((edition): LessonTexts => {
    const of = new Map(
      [...edition].map(([name, subjects]) => [
        name,
        Object.fromEntries(Object.entries(subjects).map(([language, source]) => [language, textOf(source)])),
      ]),
    )
    return { of: (lesson) => of.get(lesson), compile: async ({ source }) => mailOf(source) }
  })
  const compiledAt = editions.map(
    (edition): CompiledMails => ({
      ...shared,
      ...Object.fromEntries(
        [...edition].flatMap(([name, subjects]) =>
          Object.entries(subjects).map(([language, subject]) => [
            language === '' ? name : `${language}/${name}`,
            mailOf(subject),
          ]),
        ),
      ),
    }),
  )
  return {
    releases,
    compiled: async (release) => compiledAt[release] ?? shared,
    texts: async (release) => textsAt[release] ?? { of: () => undefined, compile: async () => mailOf('') },
    subjectOf(lesson, language, release) {
      const subjects: Readonly<Record<string, string>> | undefined = editions[release]?.get(lesson)
      return (language?.startsWith('de') ? subjects?.de : undefined) ?? subjects?.['']
    },
  }
}

/** The whole text is what the lesson is called. */
function textOf(source: string): LessonText {
  return { hash: `hash of ${source}`, format: 'md', language: 'en', source }
}

/** Says nothing but which lesson it is: what a real one looks like is not simulated. */
function mailOf(name: string): CompiledMails[string] {
  const link = { slot: 'unsubscribeUrl', as: 'plain' } as const
  const slots = {
    lessonUrl: { type: 'url', sample: 'https://www.example.com/lessons/1' },
    unsubscribeUrl: { type: 'url', sample: 'https://www.example.com/unsubscribe' },
  } as const
  return { slots, subject: [name], html: [`<p>${name}</p>`, link], text: [name, link], body: [name] }
}
