import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type Context, Hono } from 'hono'
import { SMTPServer } from 'smtp-server'
import { untilAborted } from '../../core/host.ts'
import { iso } from '../output/text.ts'
import { mailRoutes, mailsPage, readMail } from '../pages/mails.ts'
import { createEvents, type LocalEvents, serveLocally } from '../pages/site.ts'
import type { Live } from './live.ts'

export type ReceivedMail = Awaited<ReturnType<typeof receive>>

const LARGEST_MESSAGE_BYTES = 2_000_000

/** A real SMTP server on any free port that keeps mails in memory, and a page on `pagePort` (0: any) that shows them live. */
export async function openInbox(options: {
  readonly pagePort: number
  readonly live?: Pick<Live, 'pages' | 'events'>
  readonly now?: () => number
}) {
  const { pagePort, live, now = Date.now } = options
  const mails: ReceivedMail[] = []
  const listeners = new Set<(mail: ReceivedMail) => void>()
  const events = live?.events ?? createEvents()
  let isRefusing = false
  let received = 0

  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    size: LARGEST_MESSAGE_BYTES,
    onConnect: (_session, done) =>
      done(isRefusing ? Object.assign(new Error('4.3.2 out of order'), { responseCode: 421 }) : undefined),
    onData(stream, _session, done) {
      const read = async () => {
        const source = await buffer(stream)
        received += 1
        const mail = await receive(received, source, now())
        mails.push(mail)
        events.tell(String(mail.id))
        for (const listener of [...listeners]) listener(mail)
      }
      read().then(() => done(), done)
    },
  })
  // Ignore clients that disconnect midway, so that the inbox keeps running.
  smtp.on('error', () => {})
  await once(smtp.listen(0, '127.0.0.1'), 'listening')

  const page = await serveLocally(pagePort, pagesOf(mails, events, live?.pages))

  return {
    smtpUrl: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`,
    pageUrl: page.url,
    mails: mails as readonly ReceivedMail[],
    /** Refuses every connection and ends those that are open, as a broken mail server does; answers with what ends that. */
    refuse() {
      isRefusing = true
      for (const connection of smtp.connections) connection.close()
      return () => {
        isRefusing = false
      }
    },
    /** Resolves with the first mail, past or future, that `matches`; rejects when aborted. */
    async waitFor(matches: (mail: ReceivedMail) => boolean, signal: AbortSignal): Promise<ReceivedMail> {
      const past = mails.find(matches)
      if (past) return past
      const { promise, resolve } = Promise.withResolvers<ReceivedMail>()
      const look = (mail: ReceivedMail) => void (matches(mail) && resolve(mail))
      listeners.add(look)
      const aborted = untilAborted(signal).then(() => Promise.reject(signal.reason))
      return Promise.race([promise, aborted]).finally(() => listeners.delete(look))
    },
    async close() {
      await Promise.all([new Promise<void>((resolve) => smtp.close(resolve)), page.close()])
    },
  }
}

/** A mail's content is untrusted: no scripts, no network, an origin of its own. */
const MAIL_POLICY =
  "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"

function pagesOf(mails: ReceivedMail[], events: LocalEvents, live: Hono = new Hono()): Hono {
  const remove = (isGone: (mail: ReceivedMail) => boolean) => (c: Context) => {
    // A page of another site can ask for this, but not with the header.
    if (c.req.header('x-inbox') !== '1') return c.text('Press the button on the page.\n', 403)
    mails.splice(0, mails.length, ...mails.filter((mail) => !isGone(mail)))
    events.tell('removed')
    return c.body(null, 204)
  }
  const removeAll = remove(() => true)
  return new Hono()
    .route('/', live)
    .get('/', inboxPage)
    .get('/inbox', inboxPage)
    .get('/events', () => events.stream())
    .delete('/mails', removeAll)
    .delete('/mails/:id', (c) => remove(({ id }) => String(id) === c.req.param('id'))(c))
    .route(
      '/',
      mailRoutes({
        // The newest first.
        list: async () =>
          mails.toReversed().map(({ id, subject, from, to, date, text }) => ({
            id: String(id),
            title: subject,
            subject,
            at: date,
            note: `to ${to}`,
            words: [subject, from, to, text].join(' '),
          })),
        async message(id) {
          const mail = mails.find((one) => String(one.id) === id)
          return mail && { source: mail.bytes, about: `From ${mail.from} to ${mail.to}` }
        },
        fault: () => 'this mail cannot be read',
        policy: MAIL_POLICY,
      }),
    )
    .all('*', (c) => c.text('Nothing here; the inbox is at /\n', 404))
}

/** `now` is when it arrived, for a mail without a date. */
async function receive(id: number, bytes: Buffer, now: number) {
  const mail = await readMail(bytes)
  // The Date header is on the demo's clock, so days apart.
  return { ...mail, id, date: mail.date ?? iso(now), bytes, source: bytes.toString() }
}

const inboxPage = () =>
  mailsPage({
    title: 'Inbox · platformctl demo',
    heading: 'Inbox',
    tools: '<button id="delete">Delete</button> <button id="clear">Delete all</button>',
    empty: 'Mails appear here as they arrive.',
    script: INBOX_SCRIPT,
  })

const INBOX_SCRIPT = `
const opened = new Set()
/* Mails that were there when the reader last chose one are not news. */
let seen = 0
const page = {
  ended: 'The demo has ended',
  status() {
    const unread = mails.filter(({ id }) => !opened.has(id)).length
    return mails.length === 0 ? 'Waiting for the first mail …' : plural(mails.length, 'mail') + (unread ? ', ' + unread + ' unread' : '')
  },
  row({ id }, badge) {
    badge.className = 'badge new'
    badge.textContent = opened.has(id) ? '' : '● Unread'
    const fresh = mails.filter((mail) => Number(mail.id) > seen).length
    $('fresh').hidden = fresh === 0
    $('fresh').textContent = fresh + ' new: show the newest'
  },
  shown({ id }, isKept) {
    if (isKept || !isRead()) return
    opened.add(id)
    seen = Math.max(...mails.map((mail) => Number(mail.id)))
    draw()
  },
}
$('fresh').onclick = () => {
  $('search').value = ''
  open(mails[0].id)
  rows.get(mails[0].id).firstChild.focus()
}
const remove = (path) => fetch(path, { method: 'DELETE', headers: { 'X-Inbox': '1' } })
$('delete').onclick = async () => {
  const next = mails[mails.findIndex(({ id }) => id === chosen) + 1] ?? mails.at(-2)
  await remove('/mails/' + chosen)
  open(narrow.matches ? '' : next?.id ?? '')
}
$('clear').onclick = () => remove('/mails').then(() => open(''))
`
