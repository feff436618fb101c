import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decodeWords } from 'postal-mime'
import { isAcceptedSecret } from '../../core/accepted-secret.ts'
import type { CourseDefinition } from '../../core/course/definition.ts'
import { isRecord } from '../../core/is-record.ts'
import { mimeOf } from '../../core/mail/mime/mime.ts'
import { type SecretPair, secret } from '../../core/secret.ts'
import { inScheme } from '../local-page.ts'
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
): Promise<{ readonly url: string; readonly key: string; close(): Promise<void> }> {
  const streams = new Set<ServerResponse>()
  const session = createSession()
  workshop.onSave((names) => {
    for (const stream of streams) stream.write(`data: ${JSON.stringify(names)}\n\n`)
  })
  const server = createServer((request, response) => {
    answer(request, response, { workshop, streams, sender, session, school }).catch((error: unknown) =>
      send(response, 422, 'text/plain', templateFault(error)),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    key: session.key,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

interface Served {
  readonly workshop: Workshop
  readonly streams: Set<ServerResponse>
  readonly sender: PreviewSender
  readonly session: Session
  readonly school: School
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

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { workshop, streams, sender, session, school }: Served,
): Promise<void> {
  // A page elsewhere whose name was pointed at this machine would otherwise read the templates (DNS rebinding).
  if (!/^(?:127\.0\.0\.1|localhost)(?::\d+)?$/.test(request.headers.host ?? ''))
    return send(response, 403, 'text/plain', 'The preview answers on 127.0.0.1 only')
  const url = new URL(request.url ?? '/', 'http://preview')
  if (url.pathname === '/') {
    const { html, nonce } = previewPage()
    response.setHeader('Content-Security-Policy', previewPolicy(nonce))
    return send(response, 200, 'text/html', html)
  }
  if (url.pathname === '/findings') {
    const { html, nonce } = meaningsPage()
    response.setHeader('Content-Security-Policy', previewPolicy(nonce))
    return send(response, 200, 'text/html', html)
  }
  if (url.pathname === '/courses' || url.pathname === '/languages') {
    const make = url.pathname === '/courses' ? courses : languages
    const { html, nonce } = await make(workshop, school, url.searchParams)
    response.setHeader('Content-Security-Policy', previewPolicy(nonce, { forms: true }))
    return send(response, 200, 'text/html', html)
  }
  const token = request.headers['x-preview-token']
  const maySend = session.isHeldBy(typeof token === 'string' ? token : undefined)
  if (url.pathname === '/session') {
    const key = request.method === 'POST' ? await fieldIn(request, 'key') : undefined
    const given = key === undefined ? undefined : session.exchange(key)
    return given === undefined ? notYours(response) : json(response, { token: given })
  }
  if (url.pathname === '/sender.json')
    return maySend
      ? json(response, { missing: sender.missing, recipients: sender.recipients })
      : notYours(response)
  if (url.pathname === '/events') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
    response.write(': open\n\n')
    streams.add(response)
    request.on('close', () => streams.delete(response))
    return
  }
  if (url.pathname === '/mails.json')
    return json(response, await Promise.all(workshop.names.map((name) => summary(workshop, name))))

  const [, named, view] = /^\/mails\/(.+)\.(html|json|findings|eml|send)$/.exec(url.pathname) ?? []
  const name = workshop.names.find((template) => template === named)
  if (name === undefined)
    return send(response, 404, 'text/plain', 'There is no such mail; the preview is at /')
  if (view === 'findings') return json(response, await workshop.findings(name))
  const slots = Object.fromEntries(
    [...url.searchParams].flatMap(([key, value]) => (key.startsWith('slot.') ? [[key.slice(5), value]] : [])),
  )
  if (view === 'send') {
    if (request.method !== 'POST' || !maySend) return notYours(response)
    const to = await fieldIn(request, 'to')
    if (to === undefined || !sender.recipients.includes(to))
      return send(response, 400, 'text/plain', 'the address was not named with --to')
    if (sender.missing !== undefined) return send(response, 409, 'text/plain', sender.missing)
    return json(response, await sender.send({ mail: await workshop.compiled(name), name, slots, to }))
  }
  if (view === 'eml') {
    response.setHeader('Content-Disposition', `attachment; filename="${name.replace('/', '-')}.eml"`)
    return send(response, 200, 'message/rfc822', mimeOf(await workshop.message(name, slots)).toString())
  }
  if (view === 'html') {
    const { html } = await workshop.rendered(name, slots)
    // Same origin without scripts: the page may measure the mail, and the mail can do nothing.
    response.setHeader(
      'Content-Security-Policy',
      "sandbox allow-same-origin allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    )
    return send(response, 200, 'text/html', inScheme(html, url.searchParams.get('scheme')))
  }
  return json(response, await facts(workshop, name, slots))
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

function notYours(response: ServerResponse): void {
  send(response, 403, 'text/plain', PREVIEW_TEXTS.notYours)
}

/** The text of one field of the JSON body; undefined for anything else. */
async function fieldIn(request: IncomingMessage, name: string): Promise<string | undefined> {
  let text = ''
  for await (const chunk of request) {
    text += String(chunk)
    if (text.length > LONGEST_REQUEST) return undefined
  }
  try {
    const body: unknown = JSON.parse(text)
    const value = isRecord(body) ? body[name] : undefined
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
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

function json(response: ServerResponse, body: unknown): void {
  send(response, 200, 'application/json', JSON.stringify(body))
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'Content-Type': `${type}; charset=utf-8`,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
  })
  response.end(body)
}
