import { spawn } from 'node:child_process'
import { Hono } from 'hono'
import { proxy } from 'hono/proxy'
import { MINUTE_MS } from '../../core/durations.ts'
import { systemClock, untilAborted } from '../../core/host.ts'
import { iso } from '../output/text.ts'
import { createEvents, serveLocally } from '../pages/site.ts'
import { HERE, livePage } from './live-page.ts'

export type SteppingClock = ReturnType<typeof steppingClock>

/** Real time plus the days that the demo has let pass: sleeping and measuring stay real, the date does not. */
export function steppingClock() {
  let ahead = 0
  return {
    ...systemClock,
    now: () => systemClock.now() + ahead,
    advance(ms: number) {
      ahead += ms
    },
  }
}

export type Breakable = 'mail' | 'service' | 'store'

const BROKE = {
  mail: 'The mail server refuses every connection',
  service: '{service} does not answer',
  store: 'Another program holds the lock of the store',
} as const

export const ANNOUNCEMENT = 'Maintenance: signing in takes a break of ten minutes this evening.'

type Alert = Readonly<Record<'title' | 'text', string>>

export type Live = ReturnType<typeof createLive>

export interface LiveParts {
  readonly name: string
  readonly web: string
  /** What can be broken, and how: each answers with what heals it. */
  readonly breaks: Readonly<Partial<Record<Breakable, () => () => unknown>>>
  readonly serviceLabel: string
  readonly announce: (text: string) => Promise<void>
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

export function createLive(clock: SteppingClock) {
  const events = createEvents()
  const story: { readonly text: string; readonly at: string }[] = []
  const alerts: Alert[] = []
  const healing = new Map<Breakable, () => unknown>()
  const stopping = new AbortController()
  let waiting: (() => void)[] = []
  let parts: LiveParts | undefined
  let site: Awaited<ReturnType<typeof serveLocally>> | undefined
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
    story.push({ text, at: iso(clock.now()) })
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
      tell('Healed: everything answers again')
    } else if (name === 'announce') await announce(ANNOUNCEMENT).then(() => tell('Maintenance is announced'))
    else if (name === 'bounce')
      await bounce().then(() => tell('A bounce was reported: that address gets no more mail'))
    else {
      const kind = name as Breakable
      const make = Object.hasOwn(breaks, kind) ? breaks[kind] : undefined
      if (make === undefined) return false
      if (!healing.has(kind)) healing.set(kind, make())
      tell(BROKE[kind].replace('{service}', serviceLabel))
    }
    command = commands[name as keyof typeof commands]
    void look()
    changed()
    return true
  }

  const pages = new Hono()
    .get('/', livePage)
    .get('/live.json', (c) => {
      const { name = '', serviceLabel: service = '', web, breaks = {} } = parts ?? {}
      const [broken, can] = [[...healing.keys()], Object.keys(breaks)]
      const isLooking = looks > 0
      const shown = { name, service, site: site?.url, web, story, alerts, command }
      return c.json({ ...shown, broken, can, isLooking, version })
    })
    .post('/act/:name', async (c) => {
      // A page of another site can send a form here, but not with this header.
      if (c.req.header('x-live') !== '1') return c.text('Press the button on the page.\n', 403)
      const isKnown = await act(c.req.param('name')).catch((error: unknown) => {
        tell(`That did not work: ${error instanceof Error ? error.message : String(error)}`)
        return true
      })
      return isKnown ? c.body(null, 204) : c.text('There is no such button.\n', 404)
    })
    .post('/hook', async (c) => {
      const { data } = (await c.req.json()) as { readonly data: Alert }
      alerts.push({ title: data.title, text: data.text })
      tell(`Alert: ${data.title}`)
      return c.body(null, 204)
    })

  return {
    pages,
    events,
    tell,
    /** Resolves when nothing is broken; true if something was. Rejects when aborted. */
    async whole(signal: AbortSignal): Promise<boolean> {
      if (healing.size === 0) return false
      await Promise.race([new Promise<void>((resolve) => waiting.push(resolve)), untilAborted(signal)])
      signal.throwIfAborted()
      return true
    },
    async show(given: LiveParts): Promise<void> {
      parts = given
      site = await serveLocally(0, framed(given.web))
      command = given.commands.heal
      changed()
    },
    async close(): Promise<void> {
      stopping.abort()
      clearTimeout(settling)
      for (const heal of healing.values()) await heal()
      await site?.close()
    },
  }
}

/** The platform's own site, for a frame: its pages refuse to be framed by others. */
function framed(web: string): Hono {
  return new Hono().all('*', async ({ req }) => {
    const { origin, pathname, search } = new URL(req.url)
    // A page of another site keeps its own, and is refused.
    const own = req.header('origin') === origin && { origin: web }
    const headers = { ...req.header(), host: undefined, ...own }
    const answer = await proxy(`${web}${pathname}${search}`, { raw: req.raw, headers, redirect: 'manual' })
    const policy = answer.headers.get('content-security-policy')
    const framing = policy?.replace("frame-ancestors 'none'", `frame-ancestors ${HERE}`)
    if (framing) answer.headers.set('content-security-policy', framing)
    return answer
  })
}

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
