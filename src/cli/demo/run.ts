import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Clock, systemClock } from '../../core/clock.ts'
import { DAY_MS } from '../../core/durations.ts'
import { silentLog } from '../../core/log.ts'
import { PATHS } from '../../core/paths.ts'
import { type ServiceDefinition, WEB } from '../../core/service.ts'
import type { History } from '../../core/status/history.ts'
import { openHistory } from '../../core/store/open.ts'
import { untilAborted } from '../../core/wait.ts'
import { type RunningDaemon, startDaemon } from '../../daemon/start.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { type Inbox, openInbox } from './inbox.ts'
import { recordDays } from './sample-history.ts'
import { nextSteps, openStage, type Stage } from './stage.ts'

/** Real time plus the days that the demo has let pass: sleeping and measuring stay real, the date does not. */
export interface SteppingClock extends Clock {
  advance(ms: number): void
}

function steppingClock(): SteppingClock {
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

/** The first port from `wanted` on that is free on 127.0.0.1; looks at 50 at the most. */
async function freePort(wanted: number, taken: readonly number[] = []): Promise<number> {
  for (let port = wanted; port < wanted + 50; port += 1) {
    if (!taken.includes(port) && (await isFree(port))) return port
  }
  throw new Error(`no free port from ${wanted} to ${wanted + 49}`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** How long an answer or a mail may take before the demo says what it waits for: all of it is on this machine. */
const PATIENCE_MS = 20_000
const INBOX_PORT = 8025
/** `every` is at most this long, and a weekday comes sooner. */
const LONGEST_CADENCE_DAYS = 90
/** Numbers in words, for a sentence. */
const NUMBERS = 'no one two three four five six seven eight nine ten eleven twelve'.split(' ')

export interface DemoOptions {
  /** The address to subscribe; nothing leaves this machine, so any will do. */
  readonly address: string
  /** Real time that one day of the course takes. */
  readonly dayMs: number
  readonly exit: boolean
}

/** Runs the whole platform on loopback: its services, an inbox, and its course on a fast clock. */
export async function runDemo(context: Context, options: DemoOptions): Promise<ExitCode> {
  const stage = await openStage(context)
  // Last in, first out, so that nothing outlives what it depends on; each step runs even if others fail.
  const cleanup: (() => Promise<unknown>)[] = []
  try {
    const { secret, clock, inbox, daemon } = await setUp(context, stage, cleanup)
    await runCourse({ context, stage, options, inbox, clock, secret, urls: daemon.urls })
    if (!options.exit) {
      stage.wait('running; Ctrl-C ends it and leaves nothing behind')
      await untilAborted(context.signal)
    }
    return EXIT.passed
  } catch (error) {
    if (!context.signal.aborted) throw error
    return EXIT.passed
  } finally {
    stage.clear()
    let clean = true
    for (const step of cleanup.reverse()) {
      await step().catch(() => {
        clean = false
      })
    }
    stage.end(clean ? 'stopped; nothing left behind' : 'stopped; something could not be closed')
  }
}

async function setUp(context: Context, stage: Stage, cleanup: (() => Promise<unknown>)[]) {
  stage.wait('starting the services and the inbox')
  const { platform } = context
  const own = platform.services.filter(({ port }) => port !== undefined)
  const { ports, inboxPort } = await choosePorts(own, stage)
  const data = await mkdtemp(path.join(tmpdir(), 'platformctl-demo-'))
  cleanup.push(() => rm(data, { recursive: true, force: true, maxRetries: 3 }))
  const inbox = await openInbox({ pagePort: inboxPort })
  cleanup.push(() => inbox.close())

  const clock = steppingClock()
  const sample = await openHistory(path.join(data, 'history.sqlite'))
  const { sampleHealth } = platform
  if (sampleHealth)
    await recordDays(sample, clock.now(), {
      sample: sampleHealth,
      off: sampleHealth.offInDemo,
      everyMs: DAY_MS,
      build: 'demo',
    })
  const history: History = sampleHealth ? { ...sample, sampleUntil: clock.now() } : sample
  const secret = Buffer.from(context.random.bytes(24)).toString('base64url')
  const daemon: RunningDaemon = await startDaemon({
    env: {
      ...addressesOf(own, ports),
      BUILD_STAMP: 'demo',
      MAILER_API_KEY: secret,
      MAILER_SMTP_URL: inbox.smtpUrl,
      MAILER_FROM: platform.contract.find('MAILER_FROM')?.example ?? '',
      EMAIL_DISPATCH_SECRET: secret,
    },
    platform,
    services: own.map(({ name }) => name),
    host: '127.0.0.1',
    ports,
    dataFolder: data,
    history,
    schedule: false,
    clock,
    random: context.random,
    log: silentLog,
  })
  cleanup.push(() => daemon.close())
  stage.done(
    `${own.map(({ name }) => name).join(', ')} on an SQLite file, and an inbox with a real SMTP server`,
  )
  stage.open([
    ['inbox', inbox.pageUrl, 'the mails as they arrive'],
    ['status', `${daemon.urls.web}/`, 'what runs, with sample history'],
    ['lessons', `${daemon.urls.web}${PATHS.lesson.replace(':day', '1')}`, 'the course as pages'],
    ['insights', `${daemon.urls.web}/insights`, 'what you did on the pages'],
    ...own.flatMap(({ name, health }) =>
      name === WEB ? [] : [[name, `${daemon.urls[name]}${health}`, `health of ${name}`] as const],
    ),
  ])
  stage.note(`store and data: ${data}`)
  return { secret, clock, inbox, daemon }
}

async function choosePorts(
  services: readonly ServiceDefinition[],
  stage: Stage,
): Promise<{ readonly ports: Readonly<Record<string, number>>; readonly inboxPort: number }> {
  const chosen = new Map<string, number>()
  const wanted = [
    ...services.map(({ name, port = 0 }) => [name, port] as const),
    ['inbox', INBOX_PORT] as const,
  ]
  for (const [name, want] of wanted) {
    const port = await freePort(want, [...chosen.values()])
    if (port !== want) stage.note(`port ${want} is taken: ${name} listens on ${port}`)
    chosen.set(name, port)
  }
  const inboxPort = chosen.get('inbox') ?? 0
  chosen.delete('inbox')
  return { ports: Object.fromEntries(chosen), inboxPort }
}

/** Every variable that holds an address of these services, as this machine's. */
function addressesOf(
  services: readonly ServiceDefinition[],
  ports: Readonly<Record<string, number>>,
): Record<string, string> {
  return Object.fromEntries(
    services.flatMap(({ name, address = [] }) =>
      address.map((variable) => [variable, `http://127.0.0.1:${ports[name]}`]),
    ),
  )
}

/** Where the next commands can listen while the demo goes on. */
async function portsBeside(services: readonly ServiceDefinition[]) {
  const chosen: Record<string, number> = {}
  for (const { name, port } of services)
    if (port !== undefined) chosen[name] = await freePort(port, Object.values(chosen))
  return { services: chosen, preview: await freePort(8026) }
}

interface Course {
  readonly context: Context
  readonly stage: Stage
  readonly options: DemoOptions
  readonly inbox: Inbox
  readonly clock: SteppingClock
  readonly secret: string
  readonly urls: RunningDaemon['urls']
}

/** The main job as a visitor and an operator do it, over HTTP and SMTP: subscribe, confirm, then a lesson a day. */
async function runCourse({ context, stage, options, inbox, clock, secret, urls }: Course): Promise<void> {
  const web = urls.web ?? ''
  const lessons = context.platform.courses[0]?.lessons.length ?? 0
  const started = clock.monotonic()
  const signal = () => AbortSignal.any([context.signal, AbortSignal.timeout(PATIENCE_MS)])

  stage.wait(`subscribing ${options.address}`)
  await post(`${web}${PATHS.subscribe}`, { body: { email: options.address }, signal: signal() })
  const confirmation = await inbox.waitFor((mail) => mail.text.includes(PATHS.confirm), signal())
  stage.done(`subscribed ${options.address}; the confirmation mail arrived`)

  const link = confirmation.text.match(/https?:\/\/\S+\/api\/email\/confirm\?token=[^\s)>\]]+/)?.[0]
  if (link === undefined)
    throw new CommandError(EXIT.failed, 'the confirmation mail holds no confirmation link')
  const page = await fetch(link, { headers: { Accept: 'text/html' }, signal: signal() })
  if (!page.ok) throw new CommandError(EXIT.failed, `the confirmation link answered ${page.status}`)
  stage.done('followed its link: confirmed')

  let day = 1
  for (let lesson = 1; lesson <= lessons; lesson += 1) {
    const before = inbox.mails.length
    const send = () => post(`${web}${PATHS.dispatch}?limit=10`, { secret, signal: signal() })
    let answer = await send()
    // No lesson may be due today: a course can pause for weeks, or until a weekday.
    for (
      let waited = 0;
      answer.processed === 0 && answer.reason === undefined && waited < LONGEST_CADENCE_DAYS;
      waited += 1
    ) {
      clock.advance(DAY_MS)
      day += 1
      answer = await send()
    }
    if (answer.sent !== 1) {
      throw new CommandError(
        EXIT.failed,
        `lesson ${lesson} was not sent: ${JSON.stringify(answer.reason ?? answer.results)}`,
      )
    }
    const mail = await inbox.waitFor(({ id }) => id > before, signal())
    stage.done(`lesson ${lesson} of ${lessons}, day ${day}  ${mail.subject}`)
    if (lesson === lessons) break
    clock.advance(DAY_MS)
    day += 1
    await stage.countDown(`a day passes; lesson ${lesson + 1} is next`, options.dayMs)
  }
  stage.finale(
    `${NUMBERS[lessons] ?? lessons} ${lessons === 1 ? 'lesson' : 'lessons'} in ${((clock.monotonic() - started) / 1000).toFixed(0)} s, each sent once`,
    nextSteps({
      services: context.platform.services,
      urls,
      env: context.env,
      free: await portsBeside(context.platform.services),
    }),
    inbox.pageUrl,
  )
}

async function post(
  url: string,
  { body, secret, signal }: { body?: unknown; secret?: string; signal: AbortSignal },
): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(secret === undefined ? {} : { Authorization: `Bearer ${secret}` }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal,
  })
  const answer = (await response.json()) as Record<string, unknown>
  if (!response.ok) {
    throw new CommandError(
      EXIT.failed,
      `${new URL(url).pathname} answered ${response.status}: ${String(answer.message)}`,
    )
  }
  return answer
}
