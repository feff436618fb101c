import { spawn } from 'node:child_process'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { Hono, type Context as Request } from 'hono'
import { type Clock, systemClock } from '../../core/clock.ts'
import { MINUTE_MS } from '../../core/durations.ts'
import { signWebhook } from '../../core/incidents/webhook.ts'
import { PATHS } from '../../core/paths.ts'
import { secret as asSecret } from '../../core/secret.ts'
import { openStore } from '../../core/store/open.ts'
import { connect } from '../../core/store/sqlite/connection.ts'
import { createEvents, type LocalEvents, type LocalSite, serveLocally } from '../local-site.ts'
import { contentSecurityPolicy } from './inbox-page.ts'
import { livePage, LIVE_TEXTS as T } from './live-page.ts'

/** Real time plus the days that the demo has let pass: sleeping and measuring stay real, the date does not. */
export interface SteppingClock extends Clock {
  advance(ms: number): void
}

export function steppingClock(): SteppingClock {
  let ahead = 0
  return {
    now: () => systemClock.now() + ahead,
    monotonic: systemClock.monotonic,
    sleep: systemClock.sleep,
    advance(ms) {
      ahead += ms
    },
  }
}

/** What a visitor of the page can break. */
export type Breakable = 'mail' | 'service' | 'store'

export interface Alert {
  readonly title: string
  readonly text: string
}

/** The page of the demo: its story, what runs, what arrives, and buttons that break things and heal them. */
export interface Live {
  /** The page and what it asks, for the site of the inbox. */
  readonly pages: Hono
  readonly events: LocalEvents
  /** Adds to the story. */
  tell(text: string): void
  /** Resolves when nothing is broken; true if something was. */
  whole(): Promise<boolean>
  /** Gives the page its platform. */
  show(parts: LiveParts): Promise<void>
  close(): Promise<void>
}

export interface LiveParts {
  readonly name: string
  readonly web: string
  /** What can be broken, and how: each answers with what heals it. */
  readonly breaks: Readonly<Partial<Record<Breakable, () => () => unknown>>>
  readonly serviceLabel: string
  /** Puts an announcement on the status page. */
  readonly announce: (text: string) => Promise<void>
  /** Reports a bounce, as the mail provider would. */
  readonly bounce: () => Promise<void>
  /** The command that says the same in a terminal, for each button. */
  readonly commands: Readonly<Record<Breakable | 'announce' | 'bounce' | 'heal', string>>
}

/** A minute of the demo passes for each look at its health: after a fault it takes two to be sure, and so after healing. */
const LOOKS = 4
/** As often as the daemon notices that its clock has stepped, and a little. */
const LOOK_MS = 5500
/** Longer than the status page serves what it has read. */
const PAGE_MS = 11_000
const STORY_KEPT = 200

export function createLive(clock: SteppingClock): Live {
  const events = createEvents()
  const story: { readonly text: string; readonly at: string }[] = []
  const alerts: Alert[] = []
  const healing = new Map<Breakable, () => unknown>()
  const stopping = new AbortController()
  let waiting: (() => void)[] = []
  let parts: LiveParts | undefined
  let site: LocalSite | undefined
  let command = ''
  let looks = 0

  let version = 0
  let settling: NodeJS.Timeout | undefined
  const changed = () => {
    version += 1
    events.tell('live')
  }
  /** Shows once more what is there when the daemon has looked, on the day that it is now. */
  const settle = () => {
    clearTimeout(settling)
    settling = setTimeout(() => {
      clock.advance(PAGE_MS)
      changed()
    }, LOOK_MS)
  }
  const tell = (text: string) => {
    story.push({ text, at: new Date(clock.now()).toISOString() })
    if (story.length > STORY_KEPT) story.shift()
    changed()
    settle()
  }

  /** Lets minutes pass, so that the daemon looks at once. */
  async function look(): Promise<void> {
    const isLooking = looks > 0
    looks = LOOKS
    if (isLooking) return
    try {
      for (; looks > 0; looks -= 1) {
        clock.advance(MINUTE_MS + 1000)
        await systemClock.sleep(LOOK_MS, stopping.signal)
        changed()
      }
      settle()
    } catch {
      // The demo ends.
    }
  }

  async function act(name: string): Promise<boolean> {
    if (parts === undefined) return false
    const { breaks, announce, bounce, commands, serviceLabel } = parts
    if (name === 'heal') {
      for (const heal of healing.values()) await heal()
      healing.clear()
      for (const go of waiting) go()
      waiting = []
      tell(T.healed)
    } else if (name === 'announce') await announce(T.announcement).then(() => tell(T.announced))
    else if (name === 'bounce') await bounce().then(() => tell(T.bounced))
    else {
      const kind = name as Breakable
      const make = breaks[kind]
      if (make === undefined) return false
      if (!healing.has(kind)) healing.set(kind, make())
      tell(T.broke[kind].replace('{service}', serviceLabel))
    }
    command = commands[name as keyof typeof commands]
    void look()
    changed()
    return true
  }

  const pages = new Hono()
    .get('/', (c) => {
      const { html, nonce } = livePage()
      return c.html(html, 200, {
        'Content-Security-Policy': contentSecurityPolicy(nonce).replace(
          "frame-src 'self'",
          "frame-src 'self' http://127.0.0.1:* http://localhost:*",
        ),
      })
    })
    .get('/live.json', (c) =>
      c.json({
        name: parts?.name ?? '',
        service: parts?.serviceLabel ?? '',
        site: site?.url,
        web: parts?.web,
        story,
        alerts,
        command,
        broken: [...healing.keys()],
        can: Object.keys(parts?.breaks ?? {}),
        isLooking: looks > 0,
        version,
      }),
    )
    .post('/act/:name', async (c) => {
      // A page of another site can send a form here, but not with this header.
      if (c.req.header('x-live') !== '1') return c.text('Press the button on the page.\n', 403)
      try {
        return (await act(c.req.param('name')))
          ? c.body(null, 204)
          : c.text('There is no such button.\n', 404)
      } catch (error) {
        tell(`${T.failed}: ${error instanceof Error ? error.message : String(error)}`)
        return c.body(null, 204)
      }
    })
    .post('/hook', async (c) => {
      const { data } = (await c.req.json()) as { readonly data: Alert }
      alerts.push({ title: data.title, text: data.text })
      tell(`${T.alert}: ${data.title}`)
      return c.body(null, 204)
    })

  return {
    pages,
    events,
    tell,
    async whole() {
      if (healing.size === 0) return false
      await new Promise<void>((resolve) => waiting.push(resolve))
      return true
    },
    async show(given) {
      parts = given
      site = await serveLocally(0, framed(given.web))
      command = given.commands.heal
      changed()
    },
    async close() {
      stopping.abort()
      clearTimeout(settling)
      for (const heal of healing.values()) await heal()
      await site?.close()
    },
  }
}

/** The platform's own site, for a frame: its pages refuse to be framed by others. */
function framed(web: string): Hono {
  return new Hono().all('*', async (c: Request) => {
    const { pathname, search } = new URL(c.req.url)
    const { method, headers } = c.req.raw
    const given = new Headers(headers)
    given.delete('host')
    if (given.has('origin')) given.set('origin', web)
    const body = method === 'GET' || method === 'HEAD' ? null : await c.req.arrayBuffer()
    const answer = await fetch(`${web}${pathname}${search}`, {
      method,
      headers: given,
      body,
      redirect: 'manual',
    })
    const kept = new Headers(answer.headers)
    // They describe the bytes before they were decoded.
    for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) kept.delete(name)
    const policy = kept.get('content-security-policy')
    if (policy)
      kept.set('content-security-policy', policy.replace("frame-ancestors 'none'", 'frame-ancestors *'))
    return new Response(answer.body, { status: answer.status, headers: kept })
  })
}

/** A port in front of a service: shut, its neighbours are refused as if the service had stopped. */
export async function openDoor(target: () => number) {
  const open = new Set<Socket>()
  let isShut = false
  const server = createServer((client) => {
    if (isShut) return void client.destroy()
    const behind = createConnection(target(), '127.0.0.1')
    for (const [from, to] of [
      [client, behind],
      [behind, client],
    ] as const) {
      open.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    /** Answers with what opens it again. */
    shut() {
      isShut = true
      cut()
      return () => {
        isShut = false
      }
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        cut()
      }),
  }
}

/** Holds the lock of a store, as a program that hangs would; answers with what ends it. */
export function hangStore(file: string): () => void {
  const database = connect({ file, busyMs: 5000 })
  database.exec('BEGIN EXCLUSIVE')
  return () => {
    database.exec('ROLLBACK')
    database.close()
  }
}

/** Announces on the demo's clock, which is days ahead of that of a command. */
export async function announceIn(
  file: string,
  clock: SteppingClock,
  id: string,
  text: string,
): Promise<void> {
  const store = await openStore({ kind: 'sqlite', file })
  try {
    const from = clock.now()
    await store.incidents.announce({ id, text, translations: {}, from, until: undefined, by: 'demo' })
  } finally {
    await store.close()
  }
}

/** The secret of the webhooks that report bounces. */
export const feedbackSecret = (secret: string) => `whsec_${Buffer.from(secret).toString('base64')}`

/** Reports a bounce of an address that was subscribed for it, as a provider of mail would. */
export async function bounce(web: string, secret: string, clock: SteppingClock): Promise<void> {
  const address = `gone-${clock.now()}@example.com`
  const json = { 'content-type': 'application/json' }
  await fetch(`${web}${PATHS.subscribe}`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ email: address }),
  })
  const timestamp = String(Math.floor(clock.now() / 1000))
  const body = JSON.stringify({
    type: 'hard-bounce',
    timestamp: new Date(clock.now()).toISOString(),
    data: { address, status: '5.1.1' },
  })
  const id = `bounce-${timestamp}`
  const signature = signWebhook({ id, timestamp, body, secret: asSecret(feedbackSecret(secret)) })
  const answer = await fetch(`${web}/api/email/feedback/standard`, {
    method: 'POST',
    headers: { ...json, 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature },
    body,
  })
  if (!answer.ok) throw new Error(`the feedback was answered with ${answer.status}`)
}

/** Is there somebody to press a key? */
export const openable = () => process.stdin.isTTY === true && process.stdout.isTTY === true

/** Opens the page in a browser when the key o is pressed; answers with what ends that. */
export function openOnKey(url: string): () => Promise<void> {
  if (!openable()) return async () => {}
  const { stdin, platform } = process
  const opener = { darwin: 'open', win32: 'explorer' }[platform as string] ?? 'xdg-open'
  const pressed = (key: Buffer) => {
    if (key.toString() === 'o')
      spawn(opener, [url], { stdio: 'ignore', detached: true })
        .on('error', () => {})
        .unref()
    // In raw mode the terminal sends no signal itself.
    if (key[0] === 3) process.kill(process.pid, 'SIGINT')
  }
  stdin.setRawMode(true)
  stdin.on('data', pressed)
  return async () => {
    stdin.off('data', pressed)
    stdin.setRawMode(false)
    stdin.pause()
  }
}
