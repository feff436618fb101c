import * as z from 'zod'
import { isPublic } from '../../core/course/definition.ts'
import { PlatformError } from '../../core/errors.ts'
import { given } from '../../core/given.ts'
import { fill } from '../../core/mail/template.ts'
import { once } from '../../core/once.ts'
import { readPackageFile } from '../../core/package-files.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { htmlResponse } from '../http/respond.ts'
import { defineRoute, inPath, query, text } from '../http/route.ts'
import { languagesOf } from '../pages/layout.ts'
import { lessonPage, lessonsPage, subscribeForm } from '../pages/pages.ts'

/** The events that the script of a lesson's page records, on platforms that define these kinds. */
const LESSON_EVENTS: readonly string[] = ['lesson.viewed', 'lesson.completed']
const lessonScript = once(() => readPackageFile('dist/lesson.js').catch(() => undefined))

/** A lesson as a page, from the same template as its mail. Without its script it only records nothing. */
export const route = ({ courses, mails, events, language: ownLanguage }: ResolvedPlatform) => {
  const [first] = courses
  const recorded = events.filter(({ name }) => LESSON_EVENTS.includes(name))
  return defineRoute({
    tag: 'Pages',
    summary: 'A lesson of the course as a page',
    parameters: [
      inPath(
        'day',
        'The day of the course.',
        1,
        z
          .int()
          .min(1)
          .max(Math.max(1, ...courses.map(({ lessons }) => lessons.length))),
      ),
      query(
        'course',
        'A course of the platform; its first when left out.',
        first?.id ?? 'course',
        z.enum(courses.map(({ id }) => id)),
      ),
      query(
        't',
        'The signature in the link of a mail, for a course whose pages only that opens.',
        'wkZ1mNq0Vd3c5Jx8bTfYhA',
      ),
      query('language', 'A language tag, before those of Accept-Language; links in mails have it.', 'de'),
    ],
    answers: [text('text/html', 'The lesson.')],
    errors: ['not_found'],
    errorTexts: ({ noLesson, noLessons }) => ({
      not_found: courses.some(isPublic) ? noLesson : noLessons,
    }),
    handle:
      ({ course: opened, takesSubscribers }) =>
      async (c) => {
        const { params, url, frame, request } = c
        const id = c.query('course') ?? first?.id
        const course = courses.find((one) => one.id === id)
        const shown = course !== undefined && isPublic(course)
        const template = shown
          ? // Accept only the canonical form of the number.
            course.lessons.find((_, index) => params.day === String(index + 1))
          : course?.pages === 'link'
            ? (await opened()).lessonOfLink({ course: course.id, t: c.query('t') ?? '' })
            : undefined
        const texts = template === undefined ? {} : await mails.compiled()
        const { language, mail } = inLanguageOf(texts, template ?? '', languagesOf(request, url), ownLanguage)
        if (course === undefined || template === undefined || mail === undefined)
          throw new PlatformError(
            'not_found',
            shown
              ? `There are lessons for day 1 to day ${course.lessons.length}.`
              : 'There is no such lesson.',
          )
        return htmlResponse(
          lessonPage({
            frame: language === undefined ? frame : { ...frame, language },
            title: course.title,
            query: lessonQuery(course === first ? undefined : course.id, c.query('language')),
            isPublic: shown,
            day: course.lessons.indexOf(template) + 1,
            last: course.lessons.length,
            body: fill(mail.body, {}),
            signUp:
              takesSubscribers && shown
                ? subscribeForm(frame, course === first ? undefined : course.id)
                : undefined,
            script: recorded.length === 0 ? undefined : await lessonScript(),
            events: recorded,
          }),
        )
      },
  })
}

export const indexRoute = ({ courses, mails, language: ownLanguage }: ResolvedPlatform) => {
  const shown = courses.filter(isPublic)
  return defineRoute({
    tag: 'Pages',
    summary: 'The lessons that everybody can read, by course',
    parameters: [query('language', 'A language tag, before those of Accept-Language.', 'de')],
    answers: [text('text/html', 'Links to the lessons.')],
    errors: ['not_found'],
    errorTexts: ({ noLessons }) => ({ not_found: noLessons }),
    handle: () => async (c) => {
      if (shown.length === 0) throw new PlatformError('not_found', 'No course of this platform has pages.')
      const texts = await mails.compiled()
      const wanted = languagesOf(c.request, c.url)
      return htmlResponse(
        lessonsPage(
          c.frame,
          shown.map(({ id, title, lessons }) => ({
            title,
            query: lessonQuery(id === courses[0]?.id ? undefined : id, c.query('language')),
            lessons: lessons.map((name) => {
              const { language, mail } = inLanguageOf(texts, name, wanted, ownLanguage)
              return { language: language ?? c.frame.language, subject: fill(mail?.subject ?? [], {}) }
            }),
          })),
        ),
      )
    },
  })
}

/** What links to a lesson keep: its course where it is not the first, and the language that was asked for. */
function lessonQuery(course: string | undefined, language: string | undefined): string {
  const kept = new URLSearchParams({ ...given({ course, language }) }).toString()
  return kept === '' ? '' : `?${kept}`
}

/** A template in the first of these languages that there is; `language` is undefined for the platform's own. */
function inLanguageOf(
  texts: Awaited<ReturnType<ResolvedPlatform['mails']['compiled']>>,
  template: string,
  wanted: readonly string[],
  ownLanguage: string,
) {
  const own = ownLanguage.toLowerCase()
  const tags = wanted.flatMap((tag) => [tag, tag.split('-')[0] ?? tag])
  const found = tags.find((tag) => tag === own || Object.hasOwn(texts, `${tag}/${template}`))
  const language = found === own ? undefined : found
  return { language, mail: texts[language === undefined ? template : `${language}/${template}`] }
}
