import { hash } from 'node:crypto'
import { DAY_MS } from '../durations.ts'
import type { Log } from '../host.ts'
import { attempt, jsonObject } from '../is-record.ts'
import type { LessonText, LessonTexts, LessonTranslations } from '../mail/definition.ts'
import { type CourseDefinition, NOTICES, type Plan } from './definition.ts'
import { arrivalAt, dueAt, type Enrolment, movedDue, nextLesson, resumedLesson, type Zones } from './due.ts'
import type { Newcomer } from './people.ts'
import { createPinnedTexts, type LessonMail } from './pinned-texts.ts'
import type { CourseStore } from './store.ts'
import type { Begin, Claim, PinnedPlan, Progress, Revision, Subscription } from './subscription.ts'

/** How long after its next lesson was due an enrolment that a shorter course ended goes on, once the course is long again. */
const RESUMES_MS = 30 * DAY_MS
/** The row format whose builds know lessons by name. */
const BY_NAME = 2

type Followed = Pick<Claim, 'course' | 'courseVersion' | 'sentLessons' | 'day'>

export interface CatalogOptions {
  readonly zones?: Zones | undefined
  /** The texts of the lessons, for enrolments to keep; without them everybody gets the newest. */
  readonly texts?: (() => Promise<LessonTexts>) | undefined
  readonly log?: Pick<Log, 'warn'> | undefined
}

/** Opens the courses of a platform; time zones are loaded only where a course goes by local time. */
export const openCatalog = async (courses: readonly CourseDefinition[], options: CatalogOptions) =>
  createCatalog(courses, { ...options, zones: await zonesOf(courses) })

const zonesOf = async (plans: readonly Pick<Plan, 'cadence'>[]) =>
  plans.some(({ cadence }) => cadence.kind === 'at') ? (await import('./zones.ts')).zones : undefined

export type Catalog = ReturnType<typeof createCatalog>

export function createCatalog(
  courses: readonly CourseDefinition[],
  { texts: readTexts, log, ...options }: CatalogOptions = {},
) {
  let { zones } = options
  const byId = new Map(courses.map((course) => [course.id, course]))
  /** Plans from the store by key. Each is read once, even if many ask at once. */
  const kept = new Map<string, Promise<Plan | undefined>>()
  const keeping = courses.filter(({ follow }) => follow === 'start')
  const latest = courses.flatMap(({ follow, id, lessons }) => (follow === 'latest' ? [[id, lessons]] : []))
  async function read() {
    const texts = await readTexts?.().catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : 'a file cannot be read'
      log?.warn('lesson_texts_unreadable', `new enrolments keep no lesson texts: ${reason}`)
      loaded = undefined
      return undefined
    })
    return { texts, pinned: new Map(keeping.map((course) => [course.id, pinnedOf(course, texts)])) }
  }
  let loaded: ReturnType<typeof read> | undefined
  const load = () => (loaded ??= read())
  const pinnedTexts = createPinnedTexts(log)
  const followed = ({ course: id, courseVersion: version }: Pick<Claim, 'course' | 'courseVersion'>) => {
    const course = byId.get(id)
    return course?.follow === 'latest' || version === undefined ? course : undefined
  }
  return {
    courses,
    find: (id: string) => byId.get(id),
    /** The lessons of each course with `follow: 'latest'`, as JSON, to be kept for `inHand`; undefined: there is none. */
    latestLessons: latest.length === 0 ? undefined : JSON.stringify(Object.fromEntries(latest)),
    /** The lesson that a call had in hand which kept these `latestLessons`; undefined: it kept none of this course. */
    inHand({ course, sentLessons, day }: Followed, kept = ''): string | undefined {
      const lessons = jsonObject(kept)[course] as readonly string[] | undefined
      return lessons && lessonsFor(lessons, sentLessons, day - 1)[day - 1]
    },
    /** How enrolments begin, with the courses and texts as they are. */
    async begin(): Promise<Begin> {
      const { pinned } = await load()
      return ({ course: id, ...enrolment }) => {
        if (id === NOTICES) return { lessons: 0, dueAt: undefined }
        const course = byId.get(id)
        if (course === undefined) return undefined
        const { length: lessons } = course.lessons
        return { lessons, dueAt: dueAt(course, enrolment, 1, zones), pinned: pinned.get(id) }
      }
    },
    /**
     * The plan of an enrolment, its lessons in their order; undefined: the platform no longer has its course. `tried`:
     * the lesson in hand, if it may have been delivered.
     */
    async plan(enrolment: Followed, store: Pick<CourseStore, 'pinnedPlan'>, tried?: string) {
      const { course: id, courseVersion: version, sentLessons = [], day } = enrolment
      const newest = followed(enrolment)
      if (newest !== undefined) {
        const names = [...sentLessons]
        if (tried !== undefined) names[day - 1] = tried
        const lessons = lessonsFor(newest.lessons, names, tried === undefined ? day - 1 : day)
        return lessons === newest.lessons ? newest : { ...newest, lessons }
      }
      const course = byId.get(id)
      if (course === undefined || version === undefined) return course
      if ((await load()).pinned.get(id)?.version === version) return course
      let asked = kept.get(version)
      if (asked === undefined) {
        // Written by `pinnedOf`, and kept under the hash of its text. A damaged one holds up no other enrolment.
        asked = store.pinnedPlan({ course: id, version }).then(async (text = '') => {
          const plan = attempt(() => JSON.parse(text) as Plan)
          // A kept plan may go by local time although no course of today does.
          if (plan) zones ??= await zonesOf([plan])
          return plan
        })
        kept.set(version, asked)
        const forget = () => kept.delete(version)
        asked.then((plan) => plan ?? forget(), forget)
      }
      return (await asked) ?? course
    },
    async text(plan: Plan, { course: id, day, language }: Claim, store: CourseStore): Promise<LessonMail> {
      const { texts } = await load()
      const lesson = plan.lessons[day - 1] ?? ''
      const like = byId.get(id)?.lessons[0] ?? ''
      return pinnedTexts({ lesson, like, language, hashes: plan.texts?.[day - 1], texts, store })
    },
    next: (plan: Plan, enrolment: Enrolment, sent: number, sentAt?: number) =>
      nextLesson(plan, enrolment, sent, zones, sentAt),
    /** When the lesson in hand is due in another time zone; undefined: as before. */
    moved: (plan: Plan, enrolment: Subscription, to: { readonly to: string; readonly now: number }) =>
      movedDue(plan, enrolment, to, zones),
    /** How somebody goes on in a course with lessons that were sent elsewhere; one that keeps its lessons keeps those. */
    async arrival(
      course: CourseDefinition,
      { sent, sentLessons, isFinished, nextAt = 0, lastSentAt = 0, timeZone }: Newcomer,
      now: number,
    ) {
      const isLatest = course.follow === 'latest'
      const lessons = lessonsFor(course.lessons, sentLessons, sent)
      const next = Math.max(now, nextAt, lastSentAt + course.spacingMs)
      const { confirmedAt, dueAt } = arrivalAt(course, { sent, next, timeZone }, zones)
      return {
        confirmedAt,
        lessons: isFinished ? sent : lessons.length,
        dueAt: sent < lessons.length && !isFinished ? dueAt : undefined,
        progress: isLatest && sent > 0 ? progressOf(course.lessons, lessons, sent) : undefined,
        ...(!isLatest &&
          lessons !== course.lessons && {
            pinned: pinnedOf({ ...course, lessons }, (await load()).texts, sent),
          }),
      }
    },
    /** The progress of an enrolment once its lesson in hand is sent; undefined: it keeps the course that it began with. */
    progress(plan: Plan, enrolment: Followed): Progress | undefined {
      const newest = followed(enrolment)
      return newest && progressOf(newest.lessons, plan.lessons, enrolment.day)
    },
    /** How an enrolment goes on with the newest course; undefined: as it is. */
    revise(enrolment: Subscription, now: number): Revision | undefined {
      const { state, sentDays, sentLessons, promised, confirmedAt, timeZone, lastSentAt } = enrolment
      const newest = followed(enrolment)
      const sent = sentDays.length
      const isOver = sent >= enrolment.lessons
      if (newest === undefined || state !== 'confirmed' || confirmedAt === undefined) return undefined
      if (sent === 0 || (isOver && promised === undefined)) return undefined
      const lessons = lessonsFor(newest.lessons, sentLessons, sent)
      const next = isOver
        ? resumedLesson({ ...newest, lessons }, { confirmedAt, timeZone, lastSentAt }, sent, zones)
        : undefined
      const isLate = next !== undefined && next.dueAt < now - RESUMES_MS
      return {
        progress: progressOf(newest.lessons, lessons, sent),
        next: isLate ? undefined : next,
        settled: promised !== undefined && (next !== undefined || !isOver),
      }
    },
    /** The versions that enrolments begin with now. */
    versions: async () => [...(await load()).pinned.values()].map(({ version }) => version),
  }
}

/** Of the first `sent` lessons the text may be gone. */
function pinnedOf(course: CourseDefinition, texts: LessonTexts | undefined, sent = 0): PinnedPlan {
  const lessons = course.lessons.map(
    (lesson, at) => texts && (texts.of(lesson) ?? (at < sent ? {} : undefined)),
  )
  const known = lessons.every((lesson) => lesson !== undefined)
  const { lessons: names, cadence, spacingMs } = course
  const texted = known && { texts: lessons.map(hashesOf) }
  const plan = JSON.stringify({ lessons: names, cadence, spacingMs, ...texted })
  return {
    version: hash('sha256', plan, 'base64url').slice(0, 22),
    plan,
    texts: known ? lessons.flatMap((lesson): LessonText[] => Object.values(lesson)) : [],
  }
}

/** The hashes of a lesson's texts, sorted by language, because the version is made from them. */
function hashesOf(lesson: LessonTranslations): Readonly<Record<string, string>> {
  const languages = Object.keys(lesson).sort()
  return Object.fromEntries(languages.map((language) => [language, lesson[language]?.hash ?? '']))
}

/**
 * The newest course as one enrolment gets it: first what it was sent, deleted lessons too, then the others in order. A
 * lesson sent before names were kept is taken for the one that has its number now.
 */
function lessonsFor(
  course: readonly string[],
  names: readonly (string | undefined)[] | undefined,
  sent: number,
): readonly string[] {
  const known = Array.from({ length: sent }, (_, index) => names?.[index] ?? course[index] ?? '')
  if (known.every((name, index) => name === course[index])) return course
  const had = new Set(known)
  return [...known, ...course.filter((name) => !had.has(name))]
}

/** The progress of an enrolment with these lessons that was sent the first `sent`. */
function progressOf(course: readonly string[], lessons: readonly string[], sent: number): Progress {
  const isSame = course.length === lessons.length && course.every((name, index) => name === lessons[index])
  return { sentLessons: lessons.slice(0, sent), needs: isSame ? 0 : BY_NAME }
}
