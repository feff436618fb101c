import * as z from 'zod'
import { isPublic } from '../../core/course/definition.ts'
import { PlatformError } from '../../core/errors.ts'
import { fill } from '../../core/mail/render.ts'
import { readPackageFile } from '../../core/package-files.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { htmlResponse } from '../http/respond.ts'
import { defineRoute, inPath, query, text } from '../http/route.ts'
import { languagesOf } from '../pages/layout.ts'
import { lessonPage, subscribeForm } from '../pages/pages.ts'

/** The events that the script of a lesson's page records, on platforms that define these kinds. */
const LESSON_EVENTS: readonly string[] = ['lesson.viewed', 'lesson.completed']
/** With more lessons than this, an error page shows no links to them: they would fill it. */
const MOST_LESSON_LINKS = 10
let lessonScript: Promise<string | undefined> | undefined

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
    errorTexts: ({ noLesson, lessonLink }, { lessons }) => {
      const links = Array.from(
        { length: lessons <= MOST_LESSON_LINKS ? lessons : 0 },
        (_, index) => index + 1,
      )
      const list = links.map((number) => `<a href="/lessons/${number}">${lessonLink(number)}</a>`).join(', ')
      return { not_found: noLesson(list, lessons) }
    },
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
        const language = languageOf(languagesOf(request, url), ownLanguage.toLowerCase(), (tag) =>
          Object.hasOwn(texts, `${tag}/${template}`),
        )
        const mail = texts[language === undefined ? (template ?? '') : `${language}/${template}`]
        if (course === undefined || template === undefined || mail === undefined)
          throw new PlatformError(
            'not_found',
            shown
              ? `There are lessons for day 1 to day ${course.lessons.length}.`
              : 'There is no such lesson.',
          )
        lessonScript ??= readPackageFile('dist/lesson.js').catch(() => undefined)
        const asks = c.query('language')
        const kept = new URLSearchParams({
          ...(course !== first && { course: course.id }),
          ...(asks !== undefined && { language: asks }),
        }).toString()
        return htmlResponse(
          lessonPage({
            frame: language === undefined ? frame : { ...frame, language },
            title: course.title,
            query: kept === '' ? '' : `?${kept}`,
            isPublic: shown,
            day: course.lessons.indexOf(template) + 1,
            last: course.lessons.length,
            body: fill(mail.body, {}),
            signUp:
              takesSubscribers && shown
                ? subscribeForm(frame, course === first ? undefined : course.id)
                : undefined,
            script: recorded.length === 0 ? undefined : await lessonScript,
            events: recorded,
          }),
        )
      },
  })
}

/** The language of the translation to show; undefined: the platform's own. */
function languageOf(
  wanted: readonly string[],
  own: string,
  isTranslated: (tag: string) => boolean,
): string | undefined {
  const tags = wanted.flatMap((tag) => [tag, tag.split('-')[0] ?? tag])
  const found = tags.find((tag) => tag === own || isTranslated(tag))
  return found === own ? undefined : found
}
