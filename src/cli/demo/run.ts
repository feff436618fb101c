import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { NOTICES } from '../../core/course/definition.ts'
import { DAY_MS, HOUR_MS } from '../../core/durations.ts'
import { silentLog, untilAborted } from '../../core/host.ts'
import { PATHS } from '../../core/paths.ts'
import { type ServiceDefinition, WEB } from '../../core/service.ts'
import { openHistory } from '../../core/store/open.ts'
import { startDaemon } from '../../daemon/start.ts'
import { type Context, EXIT, type ExitCode, failure, programName } from '../context.ts'
import { announceIn, bounce, feedbackSecret, hangStore, openDoor, post } from './faults.ts'
import { openInbox, type ReceivedMail } from './inbox.ts'
import { ANNOUNCEMENT, createLive, type Live, openable, openOnKey, steppingClock } from './live.ts'
import { withSampleDays } from './sample-history.ts'
import { nextSteps, openStage } from './stage.ts'

/** For each name the first port from the wanted one on that is free on 127.0.0.1, of the next 50. */
async function freePorts(wanted: Readonly<Record<string, number>>): Promise<Record<string, number>> {
  const chosen: Record<string, number> = {}
  for (const [name, from] of Object.entries(wanted)) {
    let port = from
    while (Object.values(chosen).includes(port) || !(await isFree(port))) port += 1
    if (port >= from + 50) throw new Error(`no free port from ${from} to ${from + 49}`)
    chosen[name] = port
  }
  return chosen
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
const VISITOR = 'visitor@example.com'
/** `every` is at most this long, and a weekday comes sooner. */
const LONGEST_CADENCE_DAYS = 90
const NUMBERS = 'no one two three four five six seven eight nine ten eleven twelve'.split(' ')

export interface DemoOptions {
  /** The address to subscribe; nothing leaves this machine, so any will do. */
  readonly address: string
  /** Real time that one day of the course takes. */
  readonly dayMs: number
  readonly exit: boolean
}

export async function runDemo(context: Context, options: DemoOptions): Promise<ExitCode> {
  const clock = steppingClock()
  const live = createLive(clock)
  const stage = await openStage(context, live.tell)
  // Last in, first out, so that nothing outlives what it depends on; each step runs even if others fail.
  const cleanup: (() => Promise<unknown>)[] = []
  try {
    const running = await setUp(context, stage, clock, live, cleanup)
    if (!options.exit) cleanup.push(openOnKey(running.inbox.pageUrl))
    await runCourse(context, options, running)
    if (!options.exit) {
      stage.wait('running; Ctrl-C ends it and leaves nothing behind')
      await untilAborted(context.signal)
    }
  } catch (error) {
    if (!context.signal.aborted) throw error
  } finally {
    stage.clear()
    let failed = 0
    for (const step of cleanup.reverse())
      await step().catch(() => {
        failed += 1
      })
    stage.end(failed === 0 ? 'stopped; nothing left behind' : 'stopped; something could not be closed')
  }
  return EXIT.passed
}

async function setUp(
  context: Context,
  stage: Awaited<ReturnType<typeof openStage>>,
  clock: ReturnType<typeof steppingClock>,
  live: Live,
  cleanup: (() => Promise<unknown>)[],
) {
  stage.wait('starting the services and the inbox')
  const { platform, random } = context
  const own = platform.services.filter(({ port }) => port !== undefined)
  const wanted: Readonly<Record<string, number>> = { ...portsOf(own), inbox: INBOX_PORT }
  const { inbox: inboxPort = 0, ...ports } = await freePorts(wanted)
  for (const [name, port] of Object.entries({ ...ports, inbox: inboxPort }))
    if (port !== wanted[name]) stage.note(`port ${wanted[name]} is taken: ${name} listens on ${port}`)
  const data = await mkdtemp(path.join(tmpdir(), 'platformctl-demo-'))
  cleanup.push(() => rm(data, { recursive: true, force: true, maxRetries: 3 }))
  const inbox = await openInbox({ pagePort: inboxPort, live, now: clock.now })
  cleanup.push(() => inbox.close())
  const neighbour = own.find(({ name }) => name !== WEB)
  const door = neighbour && (await openDoor(() => ports[neighbour.name] ?? 0))
  if (door) cleanup.push(door.close)

  const history = withSampleDays(await openHistory(path.join(data, 'history.sqlite')))
  const secret = Buffer.from(random.bytes(24)).toString('base64url')
  const services = own.map(({ name }) => name)
  const daemon = await startDaemon({
    env: {
      ...addressesOf(own, { ...ports, ...(neighbour && { [neighbour.name]: door?.port ?? 0 }) }),
      BUILD_STAMP: 'demo',
      MAILER_API_KEY: secret,
      MAILER_SMTP_URL: inbox.smtpUrl,
      MAILER_FROM: platform.contract.find('MAILER_FROM')?.example ?? '',
      EMAIL_DISPATCH_SECRET: secret,
      MAILER_FEEDBACK_PROVIDER: 'standard',
      MAILER_FEEDBACK_SECRET: feedbackSecret(secret),
      ALERT_WEBHOOK_URL: `${inbox.pageUrl}/hook`,
    },
    platform,
    services,
    host: '127.0.0.1',
    ports,
    dataFolder: data,
    history,
    schedule: false,
    clock,
    random,
    log: silentLog,
  })
  cleanup.push(() => daemon.close())
  stage.done(`${services.join(', ')} on an SQLite file, and an inbox with a real SMTP server`)
  const web = daemon.urls.web ?? ''
  const file = path.join(data, 'platform.sqlite')
  const command = (words: string) => `${programName(context.env)} ${words}`
  const health = command(`health --deep --url web=${web}`)
  await live.show({
    name: platform.name,
    web,
    serviceLabel: neighbour?.label ?? neighbour?.name ?? '',
    breaks: { mail: inbox.refuse, ...(door && { service: door.shut }), store: () => hangStore(file) },
    announce: (text) => announceIn(file, clock, Buffer.from(context.random.bytes(4)).toString('hex'), text),
    bounce: () => bounce(web, secret, clock),
    commands: {
      mail: health,
      service: health,
      store: health,
      heal: health,
      announce: command(`status announce "${ANNOUNCEMENT}" --data ${data}`),
      bounce: command(`email suppressions list --data ${data}`),
    },
  })
  cleanup.push(live.close)
  const opens = openable() ? ' (o opens it)' : ''
  stage.open([
    ['live', `${inbox.pageUrl}/`, `your platform, this week: break it, and heal it${opens}`],
    ['inbox', `${inbox.pageUrl}/inbox`, 'the mails as they arrive'],
    ['status', `${web}/`, 'what runs, with sample history'],
  ])
  stage.note(`store and data: ${data}`)
  return { stage, clock, live, secret, inbox, urls: daemon.urls }
}

const portsOf = (services: readonly ServiceDefinition[]) =>
  Object.fromEntries(services.flatMap(({ name, port }) => (port === undefined ? [] : [[name, port]])))

function addressesOf(services: readonly ServiceDefinition[], ports: Readonly<Record<string, number>>) {
  const addresses = services.flatMap(({ name, address = [] }) =>
    address.map((variable) => [variable, `http://127.0.0.1:${ports[name]}`] as const),
  )
  return Object.fromEntries(addresses)
}

/** The main job as a visitor and an operator do it, over HTTP and SMTP: subscribe, confirm, then a lesson a day. */
async function runCourse(
  context: Context,
  options: DemoOptions,
  { stage, inbox, clock, live, secret, urls }: Awaited<ReturnType<typeof setUp>>,
): Promise<void> {
  const web = urls.web ?? ''
  const lessons = context.platform.courses[0]?.lessons.length ?? 0
  const started = clock.monotonic()
  const signal = () => AbortSignal.any([context.signal, AbortSignal.timeout(PATIENCE_MS)])

  const subscribe = async (body: { readonly email: string; readonly course?: string }) => {
    const before = inbox.mails.at(-1)?.id ?? 0
    await post(`${web}${PATHS.subscribe}`, { body, signal: signal() })
    return inbox.waitFor(({ id, text }) => id > before && text.includes(PATHS.confirm), signal())
  }
  const confirm = async (confirmation: ReceivedMail) => {
    const link = confirmation.text.match(/https?:\/\/\S+\/api\/email\/confirm\?token=[^\s)>\]]+/)?.[0]
    if (link === undefined) throw failure('the confirmation mail holds no confirmation link')
    const page = await fetch(link, { headers: { Accept: 'text/html' }, signal: signal() })
    if (!page.ok) throw failure(`the confirmation link answered ${page.status}`)
  }
  if (lessons > 0) {
    stage.wait(`subscribing ${options.address}`)
    const confirmation = await subscribe({ email: options.address })
    stage.done(`subscribed ${options.address}; the confirmation mail arrived`)
    await confirm(confirmation)
    stage.done('followed its link: confirmed')
  }
  if (!options.exit) {
    await confirm(await subscribe({ email: VISITOR, course: NOTICES }))
    stage.done(`${VISITOR} subscribed to incidents, and confirmed`)
  }

  let day = 1
  const headers = { Authorization: `Bearer ${secret}` }
  const send = async () => {
    await live.whole(context.signal)
    try {
      const answer = await post(`${web}${PATHS.dispatch}?limit=10`, { headers, signal: signal() })
      if (answer.sent === answer.processed || !(await live.whole(context.signal))) return answer
    } catch (error) {
      if (!(await live.whole(context.signal))) throw error
    }
    // Something was broken while the lesson was on its way: an hour later it is tried again.
    clock.advance(HOUR_MS)
    return send()
  }
  for (let lesson = 1; lesson <= lessons; lesson += 1) {
    const before = inbox.mails.at(-1)?.id ?? 0
    let answer = await send()
    // No lesson may be due today: a course can pause for weeks, or until a weekday.
    const isIdle = () => answer.processed === 0 && answer.reason === undefined
    for (let waited = 0; isIdle() && waited < LONGEST_CADENCE_DAYS; waited += 1) {
      clock.advance(DAY_MS)
      day += 1
      answer = await send()
    }
    if (answer.sent !== 1)
      throw failure(`lesson ${lesson} was not sent: ${JSON.stringify(answer.reason ?? answer.results)}`)
    const mail = await inbox.waitFor(({ id, to }) => id > before && to !== VISITOR, signal())
    stage.done(`lesson ${lesson} of ${lessons}, day ${day}  ${mail.subject}`)
    if (lesson === lessons) break
    const [passes, half] = [`a day passes; lesson ${lesson + 1} is next`, options.dayMs / 2]
    await stage.countDown(passes, half, half)
    // Half-way, so that the daemon has looked at the new day before the page is shown again.
    clock.advance(DAY_MS)
    day += 1
    await stage.countDown(passes, half)
  }
  stage.finale(
    lessons === 0
      ? 'this platform has no course, so there are no lessons'
      : `${NUMBERS[lessons] ?? lessons} ${lessons === 1 ? 'lesson' : 'lessons'} in ${((clock.monotonic() - started) / 1000).toFixed(0)} s, each sent once`,
    nextSteps({
      services: context.platform.services,
      urls,
      env: context.env,
      // Where they can listen while the demo goes on.
      free: {
        services: await freePorts(portsOf(context.platform.services)),
        preview: (await freePorts({ preview: 8026 })).preview ?? 0,
      },
    }),
    `${inbox.pageUrl}/inbox`,
  )
}
