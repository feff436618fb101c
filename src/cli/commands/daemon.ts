import { flushCompileCache } from 'node:module'
import path from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ownPointerFolder, readRecord } from '../../core/daemon-record.ts'
import { MINUTE_MS } from '../../core/durations.ts'
import { fileNameOf } from '../../core/env/secret-files.ts'
import { readSettings, type Settings } from '../../core/env/settings.ts'
import { validate } from '../../core/env/validate.ts'
import { codeOf, framesOf } from '../../core/errors.ts'
import { systemClock, untilAborted } from '../../core/host.ts'
import { recordedPlatform } from '../../core/platform.ts'
import type { Service } from '../../core/service.ts'
import type { DaemonOptions } from '../../daemon/options.ts'
import { namesNotRead } from '../check-environment.ts'
import { placesIn } from '../choose-platform.ts'
import { camel, command, type Define } from '../command.ts'
import type { Context, ExitCode } from '../context.ts'
import {
  CommandError,
  dataFolder,
  EXIT,
  inertJson,
  loadPaint,
  ours,
  terminalColumns,
  whichPlatform,
  wrongUsage,
} from '../context.ts'
import { type LoadedEnvironment, loadEnvironment } from '../environment.ts'
import { ENV_FILE, port, seconds, serviceInput, type Values, value } from '../inputs.ts'
import { findingText } from '../output/findings-text.ts'

const REPORT_MS = 1000

/** Writing the compile cache takes some milliseconds, so not while the first requests arrive. */
const CACHE_AFTER_MS = 2000

const toAnHour = seconds(0, 3600)

const INPUTS = {
  '--data <folder>': 'where the SQLite file lives when STORE_URL is not set (default: .platformctl)',
  ...ENV_FILE,
  '--no-schedule': 'send no lessons by itself: something else calls the dispatch endpoint',
  '--adopt': 'take the store over from a platform of another name, as after the platform was renamed',
  '--grace <seconds>': value(
    'keep serving while reporting unhealthy after SIGTERM, so that load balancers can drain; Ctrl-C skips this',
    toAnHour,
    1,
  ),
  '--deadline <seconds>': value(
    'wait this many more seconds for requests and messages in flight (the default is how long a send may take), then cut them and log how many may be repeated',
    toAnHour,
    90,
  ),
} as const

export const define: Define = ({ platform }) => {
  const own = platform.services.filter((service) => service.port !== undefined)
  const names = own.map(({ name }) => name)
  const ports = own.map(({ name, port: usual = 0 }) => [
    `--${name}-port <port>`,
    value(`port of ${name}; 0 takes a free one`, port, usual),
  ])
  return command({
    description:
      'Run the services, the store and the schedule in one process. The environment is validated before anything listens; logs are JSON lines on standard output, one of which says where each service listens.',
    notes:
      'On a terminal the log is written for people, elsewhere as JSON lines. LOG_LEVEL sets how much is logged. SIGHUP (which reloads nothing), SIGUSR1 and SIGUSR2 are logged and ignored; SIGHUP of a closing terminal stops as SIGTERM does. SIGTERM and Ctrl-C shut down gracefully; a second one stops at once. Under systemd with Type=notify the daemon reports ready, stopping and the watchdog.',
    exits:
      '0 stopped cleanly, 1 half-configured environment or a fault at run time, 2 port taken, store not writable, STORE_URL or the key of a webhook malformed, or the file of a secret unusable, 3 STORE_URL unreachable or refused, 70 the disk did not confirm a write. A supervisor should restart the daemon after 1, 3 and 70.',
    examples: [
      '--env-file .env',
      '--service web --web-port 8080 --host 0.0.0.0',
      '--data /var/lib/platformctl --grace 10',
    ],
    inputs: {
      ...serviceInput(names),
      '--host <host>': value('the address to listen on', String, '127.0.0.1'),
      // Their values are read by name: no type knows the services of a definition.
      ...(Object.fromEntries(ports) as Record<never, never>),
      ...INPUTS,
    },
    run: (context, values) =>
      runDaemon(context, {
        ...values,
        services: values.service ?? names,
        ports: Object.fromEntries(names.map((name) => [name, Reflect.get(values, camel(`${name}-port`))])),
      }),
  })
}

type Options = Values<typeof INPUTS> & Pick<DaemonOptions, 'services' | 'host' | 'ports'>

async function runDaemon(context: Context, options: Options): Promise<ExitCode> {
  const { platform, clock, random } = context
  const { services } = options
  const { startDaemon } = await import('../../daemon/start.ts')
  const loaded = await loadEnvironment(context, options.envFile, { reportsSecretFiles: true })
  const { env } = loaded
  const log = await openLog(context, readSettings(platform, env))
  const { name, ...definition } = recordedPlatform(platform)
  log.info('platform', whichPlatform(context), { platform: name, ...definition })
  const started = {
    ...options,
    env,
    platform,
    clock,
    random,
    log,
    dataFolder: dataFolder(context, options.data),
    pointerFolder: ownPointerFolder(context.env),
    envFiles: options.envFile.map((file) => path.resolve(context.cwd, file)),
  }
  for (const { id, severity, cause, fix } of namesNotRead(context, loaded, services))
    if (severity === 'warning') log.warn('environment_warning', cause, { id, fix })
  const { openReporting } = await import('../../daemon/reporting.ts')
  const { reportError } = await import('../../core/reporting/facade.ts')
  const reporting = await openReporting({ platform, env, log })
  context.onFault?.(async (error) => {
    const fault = error instanceof Error ? error.name : typeof error
    const frames = framesOf(error)
      .slice(0, 5)
      .map((frame) => frame.trim())
    const at = frames.join(' | ').slice(0, 1000)
    log.error('fault', 'the daemon met a fault that nothing handled, and ends', { fault, at })
    log.flush()
    reportError(error)
    await reporting.close(REPORT_MS)
  })
  try {
    const [unusable] = loaded.findings.filter(
      ({ severity, services: readers }) =>
        severity === 'error' && readers.some((one) => services.includes(one)),
    )
    if (unusable !== undefined) {
      const { tellRefusal } = await import('../../daemon/refusal.ts')
      const refused = wrongUsage(`${unusable.cause} ${unusable.fix}`)
      const isStore = unusable.present.includes(fileNameOf('STORE_URL'))
      await tellRefusal({ ...started, timer: systemClock }, started, refused, isStore)
      throw refused
    }
    const daemon = await startDaemon({
      ...started,
      secretFiles: loaded.secretFiles,
      isFromFile: (name) => loaded.origin(name) !== undefined,
    }).catch((error: unknown) => explain(error, context, services, loaded))
    const memory = releaseWhenIdle()
    // Node writes the compile cache at a clean exit only: after a crash, the next start would compile everything again.
    setTimeout(() => flushCompileCache?.(), CACHE_AFTER_MS).unref()
    const { notifySystemd } = await import('../../daemon/systemd.ts')
    const systemd = notifySystemd({ env: context.env, log })
    systemd.ready(Object.values(daemon.urls).join(', '))
    const stopped = untilAborted(context.signal).then(() => false)
    const lost = await Promise.race([stopped, daemon.storeLost.then(() => true)])
    systemd.stopping()
    memory.stop()
    const byHand = context.signal.reason instanceof Error && context.signal.reason.message.includes('SIGINT')
    const graceMs = byHand || lost ? 0 : options.grace * 1000
    await daemon.close({ graceMs, deadlineMs: options.deadline * 1000 })
    await systemd.close()
    if (lost)
      throw new CommandError(
        EXIT.internal,
        'the disk did not confirm a write, so the daemon ended: check the disk, then start it again.',
      )
  } finally {
    await reporting.close(REPORT_MS)
    log.flush()
  }
  return EXIT.passed
}

/** Alerts that the daemon did not start because its definition cannot be loaded; the environment names the channels without it. */
export async function tellUndefined(context: Context, argv: readonly string[], error: unknown) {
  const [{ base }, { tellRefusal }] = await Promise.all([
    import('../../presets/base/platform.ts'),
    import('../../daemon/refusal.ts'),
  ])
  const { envFiles, data } = placesIn(argv)
  const folder = dataFolder(context, data)
  const platform = { ...base, name: readRecord(folder)?.platform?.name ?? base.name }
  const { env } = await loadEnvironment(Object.create(context, { platform: { value: platform } }), envFiles)
  const log = await openLog(context, readSettings(platform, env))
  const host = { clock: context.clock, timer: systemClock, random: context.random, log }
  const options = {
    env,
    platform,
    dataFolder: folder,
    pointerFolder: ownPointerFolder(context.env),
    envFiles: envFiles.map((file) => path.resolve(context.cwd, file)),
  }
  await tellRefusal(host, options, error, false).finally(() => log.flush())
}

async function explain(
  error: unknown,
  context: Context,
  services: readonly Service[],
  loaded: LoadedEnvironment,
): Promise<never> {
  const { InvalidEnvironmentError } = await import('../../daemon/announce.ts')
  const { ListenError } = await import('../../daemon/listen.ts')
  if (error instanceof InvalidEnvironmentError) {
    const paint = await loadPaint(context.colour.stderr)
    // Validate again: the services know the values, but only this command knows which file set them.
    const { findings } = validate(context.platform.contract, loaded.env, services, loaded.origin)
    const errors = findings.filter(({ severity }) => severity === 'error')
    for (const finding of errors)
      context.stderr.write(`${findingText(finding, paint, terminalColumns(context.stderr))}\n\n`)
    const { KEY_RULES } = await import('../../core/webhook-key.ts')
    const unusableKey = errors.some(({ id }) => Object.values(KEY_RULES).some((rule) => rule.id === id))
    throw new CommandError(
      unusableKey ? EXIT.usage : EXIT.failed,
      'the environment is half-configured, so nothing was started; platformctl preflight shows the whole report.',
    )
  }
  if (error instanceof ListenError) {
    const code = codeOf(error.cause)
    const flag = `--${error.service}-port`
    const whys: Readonly<Record<string, string>> = {
      EADDRINUSE: `is in use: stop what listens there, or choose another with ${flag} (0 takes a free one)`,
      EACCES: `needs more rights: choose one above 1023 with ${flag}`,
    }
    const why = whys[code] ?? `cannot be used on this address (${code}): check --host`
    throw wrongUsage(`port ${error.port} of ${error.service} ${why}.`)
  }
  if (error instanceof Error && error.name === 'StoreOpenError') {
    // A server that is not up yet is not wrong usage: a supervisor tries again.
    const store = readSettings(context.platform, loaded.env).store.address
    if (store !== undefined) throw (await import('../local.ts')).storeFaultError(store, error)
    throw wrongUsage(error.message)
  }
  throw error
}

/** The log of a program that serves until SIGTERM. Other signals, as for a reload, are logged: to end would look like success. */
export async function openLog(context: Context, { site: { logLevel, buildStamp } }: Settings) {
  const { createLog } = await import('../../daemon/log.ts')
  const log = createLog({ write: await logOutput(context), level: logLevel, build: buildStamp })
  // Without a listener, Node exits at once, and at SIGUSR1 it opens a debugger for every user of the machine.
  for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const)
    if (process.listenerCount(signal) === 0)
      process.on(signal, () => {
        if (signal === 'SIGHUP' && context.stdout.isTTY) return process.kill(process.pid, 'SIGTERM')
        const why = `${signal} changes nothing: settings are read at the start, so restart instead`
        return log.warn(`${signal.toLowerCase()}_ignored`, why)
      })
  return log
}

/** Where log lines go: as they are, or written for people when standard output is a terminal. */
export async function logOutput({ stdout, colour }: Context): Promise<(lines: string) => void> {
  if (!stdout.isTTY) return (lines) => void stdout.write(lines)
  const { prettyLines } = await import('../../daemon/pretty-log.ts')
  const pretty = prettyLines({ colour: colour.stdout })
  // The texts first: what is an escape sequence afterwards is the colour of the line.
  return (lines) => void stdout.write(ours(pretty(inertJson(lines))))
}

const LOOK_EVERY_MS = 5000
/** Share of the time in which the event loop had work: above it, requests would wait for the collector. */
const BUSY = 0.02
const AGAIN_MS = 5 * MINUTE_MS

/** Gives memory that is not in use back to the system, after the start and now and then, while the process is idle. */
export function releaseWhenIdle({ everyMs = LOOK_EVERY_MS } = {}): { stop(): void } {
  let before = performance.eventLoopUtilization()
  let nextAt = 0
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > BUSY || performance.now() < nextAt) return
    nextAt = performance.now() + AGAIN_MS
    release()
  }, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}

/** Frees spare room for new objects and code that ran once, which V8 keeps until memory runs low. Takes about 0.05 s. */
function release(): void {
  setFlagsFromString('--expose-gc')
  // A flag set after the start only takes effect in a new context.
  const collect: NodeJS.GCFunction = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', flavor: 'last-resort' })
}
