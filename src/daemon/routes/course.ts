import * as z from 'zod'
import { type Challenge, hasBearer } from '../../core/access/identity.ts'
import { parseAddress } from '../../core/address.ts'
import type { Course } from '../../core/course/course.ts'
import { type CourseDefinition, isLanguage, isPublic, isTimeZone } from '../../core/course/definition.ts'
import { NOTICES } from '../../core/course/notices.ts'
import { PlatformError } from '../../core/errors.ts'
import { fill } from '../../core/mail/render.ts'
import { readPackageFile } from '../../core/package-files.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import type { SecretPair } from '../../core/secret.ts'
import { isOwnForm, parseJson, parseWith, readForm, readJson, readText } from '../http/body.ts'
import { emptyResponse, htmlResponse, jsonResponse } from '../http/respond.ts'
import { isScanner, type RouteHandler, type RouteRequest } from '../http/route.ts'
import { languagesOf } from '../pages/layout.ts'
import {
  type Choice,
  confirmedNoticesPage,
  confirmedPage,
  confirmPage,
  lessonPage,
  preferredPage,
  resubscribedPage,
  subscribedPage,
  subscribeForm,
  subscribeRefusedPage,
  unsubscribedPage,
  unsubscribePage,
} from '../pages/pages.ts'

const SMALL_BODY_BYTES = 8 * 1024

export const subscribeBody = (courses: readonly string[]) =>
  z.strictObject({
    email: z
      .string()
      .meta({ format: 'email', maxLength: 254 })
      .transform((text, context) => {
        const parsed = parseAddress(text)
        if (parsed.ok) return { spelling: parsed.mailbox.address, identity: parsed.identity }
        context.addIssue({ code: 'custom', message: parsed.reason })
        return z.NEVER
      }),
    course: z.enum(courses).optional().meta({
      description:
        'One of the platform’s courses, its first when left out; or `status`, for mails about incidents.',
    }),
    timeZone: z
      .string()
      .max(64)
      .refine(isTimeZone, 'not an IANA time zone, as Europe/Berlin')
      .optional()
      .meta({
        description: 'IANA name, for courses at the subscriber’s local hour.',
        examples: ['Europe/Berlin'],
      }),
    language: z
      .string()
      .max(35)
      .refine(isLanguage, 'not a language tag, as de')
      .optional()
      .meta({ description: 'A language tag; that of the platform when left out.', examples: ['de'] }),
    challenge: z.string().max(4096).optional(),
  })

/** Ids that a visitor may subscribe to: the courses, and incidents if this process watches for them. */
export function subscribable(courses: readonly CourseDefinition[], notices: boolean): readonly string[] {
  return [...courses.map(({ id }) => id), ...(notices ? [NOTICES] : [])]
}

export function subscribeRoute(
  course: () => Promise<Course>,
  courses: readonly string[],
  challenge?: Challenge,
): RouteHandler {
  const body = subscribeBody(courses)
  return async (asked) => {
    if (courses.length === 0) throw new PlatformError('not_found', 'There is nothing to subscribe to here.')
    const fields = isOwnForm(asked.request) ? await readForm(asked, SMALL_BODY_BYTES) : undefined
    if (fields !== undefined && asked.wantsHtml && !body.shape.email.safeParse(fields.email).success)
      return htmlResponse({
        status: 400,
        requestId: asked.requestId,
        ...subscribeRefusedPage(asked.frame, {
          course: courses.find((id, index) => id === fields.course && (index > 0 || id === NOTICES)),
          refused: fields.email ?? '',
        }),
      })
    const {
      email,
      challenge: response,
      ...wanted
    } = fields === undefined ? await readJson(asked, body, SMALL_BODY_BYTES) : parseWith(body, fields)
    if (challenge && !(await challenge({ response, email: email.spelling, client: asked.client })))
      throw new PlatformError('challenge_failed', 'The challenge of this form was not passed; try again.')
    const to = wanted.course ?? courses.find((id) => id !== NOTICES)
    if (to === undefined) throw new PlatformError('not_found', 'There is no course to subscribe to here.')
    const answer = await (await course()).subscribe({ ...email, ...wanted, course: to })
    const meta = { status: 202, requestId: asked.requestId }
    return fields !== undefined && asked.wantsHtml
      ? htmlResponse({ ...meta, ...subscribedPage(asked.frame, answer.sent, to) })
      : jsonResponse(answer, meta)
  }
}

/**
 * The link of a confirmation mail. A person's browser confirms by opening it; a scanner, and with `button` everybody,
 * gets a page with a button that confirms by POST.
 */
export function confirmRoute(
  course: () => Promise<Course>,
  by: 'link' | 'button',
  courses: readonly CourseDefinition[],
): RouteHandler {
  return async (asked) => {
    if (asked.isPassive) return passive(asked)
    const token = asked.url.searchParams.get('token') ?? ''
    const looksOnly = needsButton(asked, by)
    const opened = await course()
    const outcome = looksOnly ? await opened.checkToken(token) : await opened.confirm(token)
    if (outcome === 'expired')
      throw new PlatformError('token_expired', 'This link has expired; subscribe again to get a new one.')
    if (outcome === 'invalid')
      throw new PlatformError(
        'token_invalid',
        'This link does not work; use the newest one, or subscribe again.',
      )
    if (outcome === 'use') {
      if (wantsJson(asked)) return jsonResponse({ status: 'unconfirmed' }, asked)
      return htmlResponse({
        requestId: asked.requestId,
        ...confirmPage(
          asked.frame,
          `${asked.url.pathname}${asked.url.search}`,
          asked.url.searchParams.get('course'),
        ),
      })
    }
    if (wantsJson(asked)) return jsonResponse({ status: 'confirmed' }, asked)
    const id = asked.url.searchParams.get('course')
    if (id === NOTICES)
      return htmlResponse({ requestId: asked.requestId, ...confirmedNoticesPage(asked.frame) })
    const named = courses.find((one) => one.id === id)
    return htmlResponse({
      requestId: asked.requestId,
      ...confirmedPage(asked.frame, (named ?? courses[0])?.cadence),
    })
  }
}

/**
 * The link that ends a subscription. A person's browser unsubscribes by opening it, and a mail program by POST
 * (RFC 8058); a scanner, and with `button` everybody who opens it, gets a page with a button.
 */
export function unsubscribeRoute(
  course: () => Promise<Course>,
  by: 'link' | 'button',
  choice: Choice | undefined,
): RouteHandler {
  return async (asked) => {
    if (asked.isPassive) return passive(asked)
    const { searchParams } = asked.url
    const action = `${asked.url.pathname}${asked.url.search}`
    if (needsButton(asked, by)) {
      if (wantsJson(asked)) return jsonResponse({ status: 'unchanged' }, asked)
      const page = unsubscribePage(asked.frame, { action, course: searchParams.get('course'), choice })
      return htmlResponse({ requestId: asked.requestId, ...page })
    }
    const link = { s: searchParams.get('s') ?? '', t: searchParams.get('t') ?? '' }
    const fields = asked.request.method === 'POST' ? await readForm(asked, SMALL_BODY_BYTES) : {}
    if (fields.preferences === '1') {
      const { language, timeZone } = parseWith(Choices, fields)
      const wanted = { language: language || undefined, timeZone: timeZone || undefined }
      await (await course()).preferByLink(link, wanted)
      if (fields.undo !== '1')
        return htmlResponse({ requestId: asked.requestId, ...preferredPage(asked.frame) })
    }
    if (fields.undo === '1') {
      // The link's token authorizes the undo: a forged form on another site cannot know it.
      await (await course()).undoUnsubscribe(link)
      return htmlResponse({
        requestId: asked.requestId,
        ...resubscribedPage(asked.frame, searchParams.get('course')),
      })
    }
    await (await course()).unsubscribe(link)
    if (wantsJson(asked)) return jsonResponse({ status: 'unsubscribed' }, asked)
    return htmlResponse({
      requestId: asked.requestId,
      ...unsubscribedPage(asked.frame, { action, course: searchParams.get('course'), choice }),
    })
  }
}

const ONE_TO_TEN_THOUSAND = 'a whole number from 1 to 10,000'
export const Limit = z.int(ONE_TO_TEN_THOUSAND).min(1, ONE_TO_TEN_THOUSAND).max(10_000, ONE_TO_TEN_THOUSAND)
export const DispatchBody = z.strictObject({ limit: Limit.optional() })
const DispatchQuery = z.object({
  limit: z
    .string()
    .regex(/^\d{1,6}$/, ONE_TO_TEN_THOUSAND)
    .transform(Number)
    .pipe(Limit)
    .optional(),
  run: z
    .string()
    .regex(/^[A-Za-z0-9_-]{8,64}$/, '8 to 64 letters, digits, hyphens and underscores')
    .optional(),
})

/** The longest call; `dispatch --url` waits for five minutes more. */
const CALL_MS = 10 * 60 * 1000

export function dispatchRoute(
  course: () => Promise<Course>,
  options: {
    readonly secret: SecretPair | undefined
    readonly limit: number
    /** Told of each call that did not bring the secret. */
    readonly onRefused?: (given: 'wrong' | 'none') => void
  },
): RouteHandler {
  return async (asked) => {
    const { request, requestId, url } = asked
    if (!hasBearer(request, options.secret)) {
      options.onRefused?.(request.headers.has('authorization') ? 'wrong' : 'none')
      throw new PlatformError('unauthenticated', 'Dispatch needs its secret as Authorization: Bearer.')
    }
    asked.passed()
    const text = await readText(asked, SMALL_BODY_BYTES)
    const body = text.trim() === '' ? {} : parseJson(text, DispatchBody)
    const query = parseWith(DispatchQuery, {
      limit: url.searchParams.get('limit') ?? undefined,
      run: url.searchParams.get('run') ?? undefined,
    })
    const limit = query.limit ?? body.limit ?? options.limit
    // A caller that disconnects does not stop the run, which its limit and its time bound.
    const { run } = query
    const called = (await course()).dispatch({ limit, forMs: CALL_MS, ...(run !== undefined && { run }) })
    return jsonResponse(await called, { requestId })
  }
}

const Choices = z.object({
  language: z.literal('').or(z.string().refine(isLanguage, 'not a language tag, as de')).optional(),
  timeZone: z
    .literal('')
    .or(z.string().refine(isTimeZone, 'not an IANA time zone, as Europe/Berlin'))
    .optional(),
})

/** The languages and time zones that a reader may choose from; undefined: there is nothing to choose. */
export function choicesOf({
  language,
  courses,
  mails: { definitions },
}: Pick<ResolvedPlatform, 'language' | 'courses' | 'mails'>): Choice | undefined {
  const translated = definitions.flatMap(({ name, translates, lesson }) =>
    lesson && translates !== undefined ? [name.slice(0, -(translates.length + 1))] : [],
  )
  const languages = [...new Set([language.toLowerCase(), ...translated])]
  const choice = {
    languages: languages.length > 1 ? languages : [],
    hasZone: courses.some(({ cadence }) => cadence.kind === 'at' && cadence.zone === undefined),
  }
  return choice.languages.length > 0 || choice.hasZone ? choice : undefined
}

/** The events that the script of a lesson's page records, on platforms that define these kinds. */
const LESSON_EVENTS: readonly string[] = ['lesson.viewed', 'lesson.completed']
let lessonScript: Promise<string | undefined> | undefined

/** A lesson as a page, from the same template as its mail. Without its script it only records nothing. */
export function lessonRoute(
  {
    courses,
    mails,
    events,
    language: own,
  }: Pick<ResolvedPlatform, 'courses' | 'mails' | 'events' | 'language'>,
  takesSubscribers: boolean,
  opened: () => Promise<Pick<Course, 'lessonOfLink'>>,
): RouteHandler {
  const [first] = courses
  const recorded = events.filter(({ name }) => LESSON_EVENTS.includes(name))
  return async (asked) => {
    const { params, requestId, url, frame, request } = asked
    const id = url.searchParams.get('course') ?? first?.id
    const t = url.searchParams.get('t') ?? ''
    const course = courses.find((one) => one.id === id)
    const shown = course !== undefined && isPublic(course)
    const template = shown
      ? // Accept only the canonical form of the number.
        course.lessons.find((_, index) => params.day === String(index + 1))
      : course?.pages === 'link'
        ? (await opened()).lessonOfLink({ course: course.id, t })
        : undefined
    const texts = template === undefined ? {} : await mails.compiled()
    const language = languageOf(languagesOf(request, url), own.toLowerCase(), (tag) =>
      Object.hasOwn(texts, `${tag}/${template}`),
    )
    const mail = texts[language === undefined ? (template ?? '') : `${language}/${template}`]
    if (course === undefined || template === undefined || mail === undefined)
      throw new PlatformError(
        'not_found',
        shown ? `There are lessons for day 1 to day ${course.lessons.length}.` : 'There is no such lesson.',
      )
    lessonScript ??= readPackageFile('dist/lesson.js').catch(() => undefined)
    const asks = url.searchParams.get('language')
    const query = new URLSearchParams({
      ...(course !== first && { course: course.id }),
      ...(asks !== null && { language: asks }),
    }).toString()
    const page = lessonPage({
      frame: language === undefined ? frame : { ...frame, language },
      title: course.title,
      query: query === '' ? '' : `?${query}`,
      isPublic: shown,
      day: course.lessons.indexOf(template) + 1,
      last: course.lessons.length,
      body: fill(mail.body, {}),
      signUp:
        takesSubscribers && shown
          ? subscribeForm({ frame, course: course === first ? undefined : course.id })
          : undefined,
      script: recorded.length === 0 ? undefined : await lessonScript,
      events: recorded,
    })
    return htmlResponse({ requestId, ...page })
  }
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

/** Whether this request only gets a page whose button does what its link is for. */
function needsButton({ request }: RouteRequest, by: 'link' | 'button'): boolean {
  return request.method === 'GET' && (by === 'button' || isScanner(request.headers))
}

function passive({ requestId, request }: RouteRequest): Response {
  return emptyResponse({ requestId, status: request.method === 'HEAD' ? 200 : 204 })
}

/** HTML for links that people follow; JSON only if the client accepts it and not HTML. */
function wantsJson({ request, wantsHtml }: RouteRequest): boolean {
  return !wantsHtml && /\bjson\b/.test(request.headers.get('accept') ?? '')
}
