import { randomBytes } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { isAcceptedSecret } from '../../core/accepted-secret.ts'
import { isRecord } from '../../core/is-record.ts'
import { mimeOf } from '../../core/mail/transports/mime.ts'
import { rotatingSecret } from '../../core/secret.ts'
import { mailRoutes } from '../pages/mails.ts'
import { createEvents, serveLocally } from '../pages/site.ts'
import { mailsPreview, meaningsPage, type School } from './page.ts'
import type { PreviewSender } from './sender.ts'
import { templateFault, type Workshop } from './workshop.ts'

/** Keeps other accounts of this machine, which can open the preview too, from sending mail through it. */
function createSession() {
  const [key = '', token = ''] = [1, 2].map(() => randomBytes(24).toString('base64url'))
  let open = rotatingSecret(key)
  return {
    /** For the fragment of the printed address, which no server sees and no other account reads. */
    key,
    /** Gives the session's token for the key, the first time only. */
    exchange(given: string | undefined) {
      if (!isAcceptedSecret(given, open)) return undefined
      open = undefined
      return token
    },
    isHeldBy: (given: string | undefined) => isAcceptedSecret(given, rotatingSecret(token)),
  }
}

/** The preview on loopback. The page asks for JSON and mails; `/events` tells it which templates were saved. */
export async function servePreview(workshop: Workshop, port: number, sender: PreviewSender, school: School) {
  const session = createSession()
  const events = createEvents()
  workshop.onSave((names) => events.tell(JSON.stringify(names)))
  const notYours = (c: Context) =>
    c.text(
      'Only the address that the command printed can send, in the first tab that opens it. Start the preview again',
      403,
    )
  const isHeldBy = (c: Context) => session.isHeldBy(c.req.header('x-preview-token'))
  const queryOf = (c: Context) => new URL(c.req.url).searchParams
  const short = bodyLimit({ maxSize: LONGEST_REQUEST, onError: notYours })
  const pages = new Hono()
    .get('/', mailsPreview)
    .get('/findings', meaningsPage)
    // Loaded here, because the mails page needs no time zones.
    .get('/courses', async (c) => {
      const { coursesPage } = await import('./courses-page.ts')
      return coursesPage(workshop, school, queryOf(c))
    })
    .get('/languages', async (c) => {
      const { languagesPage } = await import('./languages-page.ts')
      return languagesPage(workshop, school, queryOf(c))
    })
    .all('/session', short, async (c) => {
      const token = c.req.method === 'POST' ? session.exchange(await fieldIn(c, 'key')) : undefined
      return token === undefined ? notYours(c) : c.json({ token })
    })
    .get('/sender.json', (c) =>
      isHeldBy(c) ? c.json({ missing: sender.missing, recipients: sender.recipients }) : notYours(c),
    )
    .all('/mails/*', short, async (c, next) => {
      const [, named, view] = /^\/mails\/(.+)\.(findings|clients|send)$/.exec(c.req.path) ?? []
      const name = workshop.names.find((template) => template === named)
      if (name === undefined) return next()
      if (view === 'findings') return c.json(await workshop.findings(name))
      if (view === 'clients') return c.json(await workshop.clients(name))
      if (c.req.method !== 'POST' || !isHeldBy(c)) return notYours(c)
      const to = await fieldIn(c, 'to')
      if (to === undefined || !sender.recipients.includes(to))
        return c.text('the address was not named with --to', 400)
      if (sender.missing !== undefined) return c.text(sender.missing, 409)
      return c.json(await sender.send(await workshop.compiled(name), name, to, slotsIn(queryOf(c))))
    })
    .get('/events', () => events.stream())
    .route(
      '/',
      mailRoutes({
        list: () => Promise.all(workshop.names.map((name) => summary(workshop, school, name))),
        async message(name, query) {
          if (!workshop.names.includes(name)) return undefined
          const source = mimeOf(await workshop.message(name, slotsIn(query)))
          const preheader = await workshop.preheader(name)
          return { source, about: preheader && `Preview text: ${preheader}` }
        },
        fault: templateFault,
        // Same origin without scripts: the page may measure the mail, and the mail can do nothing.
        policy:
          "sandbox allow-same-origin allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
      }),
    )
    .all('*', (c) => c.text('There is no such mail; the preview is at /', 404))
  pages.onError((error, c) => c.text(templateFault(error), 422))
  return { ...(await serveLocally(port, pages)), key: session.key }
}

const slotsIn = (query: URLSearchParams) =>
  Object.fromEntries(
    [...query].flatMap(([key, value]) => (key.startsWith('slot.') ? [[key.slice(5), value]] : [])),
  )

const LONGEST_REQUEST = 1024

async function fieldIn(c: Context, name: string): Promise<string | undefined> {
  const body: unknown = await c.req.json().catch(() => undefined)
  const value = isRecord(body) ? body[name] : undefined
  return typeof value === 'string' ? value : undefined
}

async function summary(workshop: Workshop, { notices, language }: School, name: string) {
  const row = (note: string) => ({ id: name, title: name, note, words: `${name} ${note}` })
  try {
    const { slots } = await workshop.compiled(name)
    const { subject } = await workshop.rendered(name)
    const [, tag = language] = /^(?:(.+)\/)?status-notice$/.exec(name) ?? []
    const samples = name.endsWith('status-notice') ? await notices?.(tag) : undefined
    return { ...row(subject), slots, ...(samples && { samples }) }
  } catch (error) {
    return { ...row('does not compile'), fault: templateFault(error), slots: {} }
  }
}
