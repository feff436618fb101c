import { randomBytes } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { decodeWords } from 'postal-mime'
import { isAcceptedSecret } from '../../core/accepted-secret.ts'
import type { CourseDefinition } from '../../core/course/definition.ts'
import { isRecord } from '../../core/is-record.ts'
import { mimeOf } from '../../core/mail/mime/mime.ts'
import { type SecretPair, secret } from '../../core/secret.ts'
import { inScheme, type LocalPage } from '../local-page.ts'
import { createEvents, type LocalSite, serveLocally } from '../local-site.ts'
import { chooseCourse, coursesPage } from './courses-page.ts'
import { chooseLanguages, languagesPage, mailLanguages } from './languages-page.ts'
import { meaningsPage, previewPage, previewPolicy } from './page.ts'
import type { PreviewSender } from './sender.ts'
import { PREVIEW_TEXTS } from './texts.ts'
import { templateFault, type Workshop } from './workshop.ts'

/** Keeps other accounts of this machine, which can open the preview too, from sending mail through it. */
export interface Session {
  /** For the fragment of the printed address, which no server sees and no other account reads. */
  readonly key: string
  /** Gives the session's token for the key, the first time only. */
  exchange(key: string): string | undefined
  isHeldBy(token: string | undefined): boolean
}

function createSession(): Session {
  const [key, token] = [random(), random()]
  let open: SecretPair | undefined = onlyValue(key)
  return {
    key,
    exchange(given) {
      if (!isAcceptedSecret(given, open)) return undefined
      open = undefined
      return token
    },
    isHeldBy: (given) => isAcceptedSecret(given, onlyValue(token)),
  }
}

const random = () => randomBytes(24).toString('base64url')

function onlyValue(value: string): SecretPair {
  const current = secret(value)
  return { current, accepted: [current] }
}

/** Gmail shows no more of a mail's HTML than this. */
const CLIP_BYTES = 102 * 1024

/** The preview on loopback. The page asks for JSON and mails; `/events` tells it which templates were saved. */
export async function servePreview(
  workshop: Workshop,
  port: number,
  sender: PreviewSender,
  school: School = { courses: [], language: 'en', zone: 'UTC', now: Date.now },
): Promise<LocalSite & { readonly key: string }> {
  const session = createSession()
  const events = createEvents()
  workshop.onSave((names) => events.tell(JSON.stringify(names)))
  const pages = pagesOf(workshop, sender, session, school)
    .get('/events', () => events.stream())
    .all('*', (c) => c.text('There is no such mail; the preview is at /', 404))
  pages.onError((error, c) => c.text(templateFault(error), 422))
  return { ...(await serveLocally(port, pages)), key: session.key }
}

/** Courses and languages for the preview's pages about them. */
export interface School {
  readonly courses: readonly CourseDefinition[]
  /** The platform's. */
  readonly language: string
  /** Where the reader is. */
  readonly zone: string
  readonly now: () => number
}

function pagesOf(workshop: Workshop, sender: PreviewSender, session: Session, school: School): Hono {
  const notYours = (c: Context) => c.text(PREVIEW_TEXTS.notYours, 403)
  const page = (c: Context, { html, nonce }: LocalPage, forms = false) =>
    c.html(html, 200, { 'Content-Security-Policy': previewPolicy(nonce, { forms }) })
  const isHeldBy = (c: Context) => session.isHeldBy(c.req.header('x-preview-token'))
  const queryOf = (c: Context) => new URL(c.req.url).searchParams
  const short = bodyLimit({ maxSize: LONGEST_REQUEST, onError: notYours })
  return new Hono()
    .get('/', (c) => page(c, previewPage()))
    .get('/findings', (c) => page(c, meaningsPage()))
    .get('/courses', async (c) => page(c, await courses(workshop, school, queryOf(c)), true))
    .get('/languages', async (c) => page(c, await languages(workshop, school, queryOf(c)), true))
    .all('/session', short, async (c) => {
      const key = c.req.method === 'POST' ? await fieldIn(c, 'key') : undefined
      const token = key === undefined ? undefined : session.exchange(key)
      return token === undefined ? notYours(c) : c.json({ token })
    })
    .get('/sender.json', (c) =>
      isHeldBy(c) ? c.json({ missing: sender.missing, recipients: sender.recipients }) : notYours(c),
    )
    .get('/mails.json', async (c) =>
      c.json(await Promise.all(workshop.names.map((name) => summary(workshop, name)))),
    )
    .all('/mails/*', short, async (c, next) => {
      const [, named, view] = /^\/mails\/(.+)\.(html|json|findings|eml|send)$/.exec(c.req.path) ?? []
      const name = workshop.names.find((template) => template === named)
      if (name === undefined) return next()
      if (view === 'findings') return c.json(await workshop.findings(name))
      const slots = Object.fromEntries(
        [...queryOf(c)].flatMap(([key, value]) => (key.startsWith('slot.') ? [[key.slice(5), value]] : [])),
      )
      if (view === 'send') {
        if (c.req.method !== 'POST' || !isHeldBy(c)) return notYours(c)
        const to = await fieldIn(c, 'to')
        if (to === undefined || !sender.recipients.includes(to))
          return c.text('the address was not named with --to', 400)
        if (sender.missing !== undefined) return c.text(sender.missing, 409)
        return c.json(await sender.send({ mail: await workshop.compiled(name), name, slots, to }))
      }
      if (view === 'eml')
        return c.body(mimeOf(await workshop.message(name, slots)).toString(), 200, {
          'Content-Type': 'message/rfc822',
          'Content-Disposition': `attachment; filename="${name.replace('/', '-')}.eml"`,
        })
      if (view === 'json') return c.json(await facts(workshop, name, slots))
      const { html } = await workshop.rendered(name, slots)
      // Same origin without scripts: the page may measure the mail, and the mail can do nothing.
      return c.html(inScheme(html, c.req.query('scheme') ?? null), 200, {
        'Content-Security-Policy':
          "sandbox allow-same-origin allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
      })
    })
}

async function courses(workshop: Workshop, school: School, query: URLSearchParams) {
  // Loaded here, because the mails page does not need it.
  const { zones } = await import('../../core/course/zones.ts')
  const mails = mailLanguages(workshop.definitions, school.language)
  const choice = chooseCourse(query, { ...school, now: school.now(), zones })
  const shown = choice?.course.lessons.map((lesson) => mails.inLanguage(lesson, choice.language).name) ?? []
  const headlines = Object.fromEntries(
    await Promise.all(shown.map(async (name) => [name, await workshop.headline(name)] as const)),
  )
  const zoneNames = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((name) => name !== 'UTC')]
  return coursesPage({ courses: school.courses, choice, mails, headlines, zones, zoneNames })
}

async function languages(workshop: Workshop, { courses, language }: School, query: URLSearchParams) {
  const mails = mailLanguages(workshop.definitions, language)
  const choice = chooseLanguages(query, mails)
  const shown = choice?.sides.map((side) => mails.inLanguage(choice.mail, side).name) ?? []
  const headlines = Object.fromEntries(
    await Promise.all(
      shown.map(async (name) => {
        const { fault } = await summary(workshop, name)
        const headline = await workshop.headline(name)
        return [name, fault === undefined ? headline : { ...headline, fault: String(fault) }] as const
      }),
    ),
  )
  return languagesPage({ courses, choice, mails, headlines })
}

const LONGEST_REQUEST = 1024

/** The text of one field of the JSON body; undefined for anything else. */
async function fieldIn(c: Context, name: string): Promise<string | undefined> {
  const body: unknown = await c.req.json().catch(() => undefined)
  const value = isRecord(body) ? body[name] : undefined
  return typeof value === 'string' ? value : undefined
}

/** Everything about one mail that is not its HTML; a fault is a fact too. */
async function facts(workshop: Workshop, name: string, slots: Readonly<Record<string, string>>) {
  try {
    const message = await workshop.message(name, slots)
    const source = mimeOf(message)
    return {
      subject: message.subject,
      text: message.text,
      source: source.toString(),
      headers: source
        .subarray(0, source.indexOf('\r\n\r\n'))
        .toString()
        .replaceAll(/\r\n[ \t]+/g, ' ')
        .split('\r\n')
        .map((line) => decodeWords(line)),
      html: message.html,
      preheader: await workshop.preheader(name),
      htmlBytes: Buffer.byteLength(message.html),
      totalBytes: source.length,
      clipBytes: CLIP_BYTES,
    }
  } catch (error) {
    return { fault: templateFault(error) }
  }
}

async function summary(workshop: Workshop, name: string): Promise<Record<string, unknown>> {
  try {
    const [mail, rendered] = [await workshop.compiled(name), await workshop.rendered(name, {})]
    return { name, subject: rendered.subject, slots: mail.slots }
  } catch (error) {
    return { name, subject: name, fault: templateFault(error), slots: {} }
  }
}
