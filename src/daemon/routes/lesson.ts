import * as z from 'zod'
import { once } from '../../core/calls.ts'
import { isPublic } from '../../core/course/definition.ts'
import { PlatformError } from '../../core/errors.ts'
import { given } from '../../core/given.ts'
import { escapeHtml, fill } from '../../core/mail/template.ts'
import { directionOf } from '../../core/messages/messages.ts'
import { readPackageFile } from '../../core/package-files.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { htmlResponse, languagesOf } from '../http/respond.ts'
import { defineRoute, inPath, query, text } from '../http/route.ts'
import { page } from '../pages/layout.ts'
import { SUBSCRIBE_STYLE, subscribeForm } from '../pages/pages.ts'

/** The events that the script of a lesson's page records, on platforms that define these kinds. */
const LESSON_EVENTS: readonly string[] = ['lesson.viewed', 'lesson.completed']
const lessonScript = once(() => readPackageFile('dist/lesson.js').catch(() => undefined))

/** A lesson as a page, from the same template as its mail. Without its script it only records nothing. */
export const route = ({ courses, mails, events, language: ownLanguage }: ResolvedPlatform) => {
  const [first] = courses
  const ids = courses.map(({ id }) => id)
  const most = Math.max(1, ...courses.map(({ lessons }) => lessons.length))
  const recorded = events.filter(({ name }) => LESSON_EVENTS.includes(name))
  return defineRoute({
    tag: 'Pages',
    summary: 'A lesson of the course as a page',
    parameters: [
      inPath('day', 'The day of the course.', 1, z.int().min(1).max(most)),
      query('course', 'A course of the platform; its first when left out.', ids[0] ?? 'course', z.enum(ids)),
      query(
        't',
        'The signature in the link of a mail, for a course whose pages only that opens.',
        'wkZ1mNq0Vd3c5Jx8bTfYhA',
      ),
      query('language', 'A language tag, before those of Accept-Language; links in mails have it.', 'de'),
    ],
    answers: [text('text/html', 'The lesson.')],
    errors: ['not_found'],
    errorTexts: ({ noLesson, noLessons }) => ({ not_found: courses.some(isPublic) ? noLesson : noLessons }),
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
        if (course === undefined || template === undefined || mail === undefined) {
          const day = shown ? `The last lesson is number ${course.lessons.length}.` : undefined
          throw new PlatformError('not_found', day ?? 'There is no such lesson.')
        }
        const T = frame.messages.course
        const { length: last } = course.lessons
        const day = course.lessons.indexOf(template) + 1
        const named = course === first ? undefined : course.id
        const kept = lessonQuery(named, c.query('language'))
        const link = (to: number, text: string) =>
          to < 1 || to > last || !shown ? '<span></span>' : `<a href="/lessons/${to}${kept}">${text}</a>`
        // The lesson is in its owners' language, which the engine need not speak.
        const written = language ?? frame.language
        const isSpoken = written === frame.messages.language
        const spoken = isSpoken ? '' : ` lang="${escapeHtml(written)}" dir="${directionOf(written)}"`
        const title = escapeHtml(course.title)
        const above = shown ? `<a href="/lessons">${title}</a>` : title
        const signUp =
          takesSubscribers && shown
            ? `\n<section class="signup"><h2>${T.subscribeHeading}</h2>\n${subscribeForm(frame, named, language)}</section>`
            : ''
        return htmlResponse(
          page(
            frame,
            `${T.lesson(day)} · ${course.title}`,
            `<p class="quiet course">${above} · ${T.lessonOf(day, last)}</p>
<article class="lesson" data-lesson="day-${day}"${spoken}>${fill(mail.body, {})}</article>
<nav aria-label="${T.lessons}">${link(day - 1, `← ${T.lesson(day - 1)}`)}${link(day + 1, `${T.lesson(day + 1)} →`)}</nav>${signUp}`,
            {
              wide: true,
              description: `${course.title} · ${T.lessonOf(day, last)}`,
              style: LESSON_STYLE + SUBSCRIBE_STYLE,
              script: recorded.length === 0 ? undefined : await lessonScript(),
              data: recorded,
            },
          ),
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
      const T = c.frame.messages.course
      const lists = shown.map(({ id, title, lessons }) => {
        const kept = lessonQuery(id === courses[0]?.id ? undefined : id, c.query('language'))
        const items = lessons.map((name, index) => {
          const { language = c.frame.language, mail } = inLanguageOf(texts, name, wanted, ownLanguage)
          const subject = fill(mail?.subject ?? [], {})
          return `<li><a href="/lessons/${index + 1}${escapeHtml(kept)}" lang="${escapeHtml(language)}">${escapeHtml(subject)}</a></li>`
        })
        return `<h2>${escapeHtml(title)}</h2>\n<ol>${items.join('\n')}</ol>`
      })
      const body = `<h1>${T.lessons}</h1>\n${lists.join('\n')}`
      return htmlResponse(page(c.frame, T.lessons, body, { description: T.lessons }))
    },
  })
}

const LESSON_STYLE = `
.lesson { background: var(--paper); border: 1px solid var(--line); border-radius: 14px; padding: 2rem 2.25rem; max-width: 42rem; margin: 0 auto; }
.course { max-width: 42rem; margin: 0 auto 1rem; }
.lesson code { font-size: .95em; }
@media (max-width: 38rem) { .lesson { padding: 1.25rem; } }
nav { display: flex; justify-content: space-between; max-width: 42rem; margin: 1rem auto 0; }
`

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
