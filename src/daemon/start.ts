import { hostname } from 'node:os'
import path from 'node:path'
import { type Clock, systemClock } from '../core/clock.ts'
import { createWakes } from '../core/course/wakes.ts'
import { alertsFiles } from '../core/daemon-places.ts'
import { type DaemonRecord, leavePointer, recordDaemon, recordedStore } from '../core/daemon-record.ts'
import type { Environment } from '../core/env/environment.ts'
import { rawValue } from '../core/env/environment.ts'
import type { Settings, StoreAddress } from '../core/env/settings.ts'
import { malformedStoreSentence, malformedStores } from '../core/env/settings.ts'
import { codeOf } from '../core/error-code.ts'
import type { Host } from '../core/host.ts'
import type { Log } from '../core/log.ts'
import type { Places } from '../core/next-step.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { Random } from '../core/random.ts'
import { reportError } from '../core/reporting/facade.ts'
import { type Service, WEB } from '../core/service.ts'
import type { History } from '../core/status/history.ts'
import { assertOwner } from '../core/store/meta.ts'
import type { OnLost } from '../core/store/on-lost.ts'
import { openHistory, openSharedHistory, openStore } from '../core/store/open.ts'
import { type Store, StoreOpenError } from '../core/store/store.ts'
import { storeFault, storeFaultReason } from '../core/store-fault.ts'
import { within } from '../core/wait.ts'
import { alertChannels, startAlerts } from './alerts.ts'
import { announceEnvironment, InvalidEnvironmentError } from './announce.ts'
import { watchCertificates } from './certificates.ts'
import { type ConditionsOptions, createConditions } from './conditions.ts'
import { forgetOld } from './housekeeping.ts'
import { type Listener, listen } from './listen.ts'
import { createMailSender, subscribersChannel } from './notices.ts'
import { createPing } from './ping.ts'
import { openPlatform } from './platform.ts'
import { startRecorder } from './recorder.ts'
import { storeAddress, tellRefusal } from './refusal.ts'
import { startSchedule } from './schedule.ts'
import { shareHistory } from './shared-history.ts'

export interface DaemonOptions {
  readonly env: Environment
  readonly platform: ResolvedPlatform
  readonly services: readonly Service[]
  readonly host: string
  /** 0 takes a free one; of a service that is not named, the one of its definition. */
  readonly ports: Readonly<Record<Service, number>>
  /** Holds `history.sqlite`, and `platform.sqlite` unless STORE_URL names another store. */
  readonly dataFolder: string
  /** In place of `history.sqlite`; closed with the daemon. */
  readonly history?: History
  readonly schedule: boolean
  /** Take the store over from a platform of another name. */
  readonly adopt?: boolean | undefined
  /** Measures the disk of the data folder; the system's when left out. */
  readonly freeSpace?: ConditionsOptions['freeSpace']
  /** The env files that `env` was read from, for the record in the data folder. */
  readonly envFiles?: readonly string[]
  /** Whether one of them set a variable. */
  readonly isFromFile?: (name: string) => boolean
  /** Where commands that run in other folders look for this daemon. */
  readonly pointerFolder?: string | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

export interface RunningDaemon {
  /** Where each service listens; a service that does not run here is absent. */
  readonly urls: Readonly<Record<Service, string>>
  /** Resolves when a disk did not confirm a write: end this process then, so that a new one opens its files anew. */
  readonly storeLost: Promise<void>
  /**
   * Ends in order: health fails, `graceMs` pass (so that a load balancer sees it), nothing new is accepted, requests
   * and messages in flight finish or meet `deadlineMs`, the store is checkpointed and closed.
   */
  close(options?: { readonly graceMs?: number; readonly deadlineMs?: number }): Promise<void>
}

/** As long as a lease: by then every send in flight is answered or given up. */
const DEADLINE_MS = 90_000

/** A service's port could not be taken; `cause` says why. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
  readonly service: Service
  readonly port: number

  constructor(service: Service, port: number, cause: unknown) {
    super(`the port ${port} of ${service} could not be taken`, { cause })
    this.service = service
    this.port = port
  }
}

/** Validates, opens the store, listens, serves, and runs the schedule unless that is turned off. */
export async function startDaemon(options: DaemonOptions): Promise<RunningDaemon> {
  const { platform: definition, services, host, ports, clock, random, log } = options
  const engine: Host = { clock, timer: systemClock, random, log }
  const refused = (...why: readonly [cause: Parameters<typeof tellRefusal>[2], reason: string]) =>
    tellRefusal(engine, { ...options, places: placesOf(options) }, ...why)
  const [malformed] = malformedStores(options.env)
  if (malformed !== undefined) throw new StoreOpenError(malformedStoreSentence(malformed))
  let settings: Settings
  try {
    settings = announceEnvironment(options)
  } catch (error) {
    if (error instanceof InvalidEnvironmentError) {
      const groups = [...new Set(error.findings.map(({ group }) => group))].join(', ')
      await refused('half_configured', `half-configured: ${groups}`)
    }
    throw error
  }
  const { promise: storeLost, resolve: endForStore } = Promise.withResolvers<void>()
  const onLost = (cause: unknown) => {
    log.error(
      'store_lost',
      'the disk did not confirm a write: its file was closed, and the daemon must end',
      {
        fault: cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown',
      },
    )
    reportError(cause)
    endForStore()
  }
  let told = false
  // Last in, first out: nothing is closed before what depends on it.
  const opened: ((deadlineMs: number) => Promise<void>)[] = []
  const unwind = async (deadlineMs = 0) => {
    for (const close of opened.splice(0).reverse()) {
      await close(deadlineMs).catch((error: unknown) =>
        log.error('stop_failed', 'a part of the daemon did not end cleanly', {
          fault: error instanceof Error ? error.name : 'unknown',
        }),
      )
    }
  }
  try {
    const address = storeAddress(settings, options.dataFolder)
    const store = await openOwned(options, address, { poolSize: settings.store.poolSize, log, onLost }).catch(
      async (error: unknown) => {
        told = true
        if (storeFault(error) !== 'other_platform') await refused('store', storeFaultReason(error))
        throw error
      },
    )
    opened.push(() => store.close())
    const history = await openHistoryOf(options, address, onLost)
    let recorder: ReturnType<typeof startRecorder> | undefined
    opened.push(async () => {
      await recorder?.stop()
      await history.close()
    })
    const listeners = new Map<Service, Listener>()
    let schedule: ReturnType<typeof startSchedule> | undefined
    // All at once: what is in flight in one must not wait for another.
    opened.push(async (deadlineMs) => {
      await Promise.all([
        ...[...listeners.values()].map((listener) => listener.close({ deadlineMs })),
        schedule && within(deadlineMs, schedule.stop(), giveUp),
      ])
    })
    for (const service of services) {
      const port = ports[service] ?? definition.services.find(({ name }) => name === service)?.port ?? 0
      listeners.set(
        service,
        await listen({ host, port }).catch((error: unknown) => {
          throw new ListenError(service, port, error)
        }),
      )
    }
    const urls = Object.fromEntries(
      [...listeners].map(([service, { port }]) => [
        service,
        `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
      ]),
    )
    const platform = openPlatform({
      env: { ...ownAddresses(definition, urls), ...present(options.env) },
      platform: definition,
      store,
      clock,
      random,
      log,
      history,
      onLost,
      sources: {
        files: options.envFiles ?? [],
        sourceOf: (name) =>
          rawValue(options.env, name) === undefined
            ? 'default'
            : options.isFromFile?.(name)
              ? 'file'
              : 'environment',
      },
    })
    // Before the listeners close: mails that are on their way still need the store.
    opened.splice(2, 0, (deadlineMs) => within(deadlineMs, platform.close(), giveUp))
    // Report a table that cannot be created now, not to the first visitor.
    if (services.includes(WEB)) {
      await platform.analytics?.()
      await platform.prepareMail()
    }
    const served = [...listeners].flatMap(([name, listener]) => {
      const service = platform.services.get(name)
      return service === undefined ? [] : [{ ...service, listener }]
    })
    for (const { listener, handler, poll } of served) listener.serve(handler, poll)
    platform.metrics.expectRounds(services)
    let certificates: ReturnType<typeof watchCertificates> | undefined
    const looks = services.includes(WEB)
      ? createConditions({
          settings,
          store,
          dataFolder: options.dataFolder,
          certificates: () => certificates?.found() ?? [],
          services,
          neighbours: platform.neighbours,
          mailRefused: platform.mailRefused,
          feedbackRefused: platform.metrics.feedbackRefused,
          clock,
          freeSpace: options.freeSpace,
        })
      : undefined
    const mailsNotices = settings.mail !== undefined && services.includes(WEB)
    const alerts = startAlerts(engine, {
      store,
      platform: definition,
      settings,
      channels: [
        ...alertChannels(clock, definition, settings, placesOf(options)),
        ...(mailsNotices ? [subscribersChannel({ platform: definition, store, clock })] : []),
      ],
      held: platform.held,
      files: alertsFiles(options.dataFolder, options.pointerFolder),
    })
    const mails = createMailSender({ store, course: platform.course, clock, log })
    // Before the store closes: alerts in flight are recorded first.
    opened.splice(1, 0, (deadlineMs) =>
      within(
        deadlineMs,
        Promise.all([alerts.stop(), mails.sent()]).then(() => {}),
        giveUp,
      ),
    )
    recorder = startRecorder({
      health: served.map(({ health }) => health),
      neighbours: platform.neighbours,
      history,
      clock,
      log,
      onRecorded: platform.metrics.recorded,
      async follow(reports) {
        // Counts that are lost make a day's rates look higher, and nothing else.
        await platform.writeMailCounts().catch(() => {})
        const again = await alerts.follow(looks ? [...reports, await looks()] : reports)
        if (mailsNotices) {
          mails.confirmations()
          // After the operators, and waited for by nobody.
          void alerts.told().then(mails.notices)
        }
        return again
      },
    })
    const unwatch = platform.metrics.watch()
    opened.push(async () => unwatch())
    if (services.includes(WEB)) {
      const watch = watchCertificates({
        settings,
        services: definition.services,
        clock,
        log,
        metrics: platform.metrics,
      })
      certificates = watch
      opened.push(() => watch.stop())
    }
    if (options.schedule && services.includes(WEB)) {
      const { heartbeatPing } = settings
      const watcher = heartbeatPing && createPing({ url: heartbeatPing, clock, log })
      opened.push(async () => watcher?.stop())
      const wakes = createWakes({
        course: platform.course,
        isDue: async () =>
          (await platform.held('course')) === undefined && (await store.course.isDue(clock.now())),
        clock,
      })
      schedule = startSchedule({
        ...(watcher && { onDone: watcher.ping }),
        store,
        clock,
        log,
        run: async (signal) => {
          await wakes.hour(signal)
          if (signal.aborted) return 'stopped'
          await forgetOld(platform, store, clock.now)
          return 'done'
        },
        minute: wakes.minute,
      })
    }
    const own = {
      version: 1,
      pid: process.pid,
      host: hostname(),
      startedAt: new Date(clock.now()).toISOString(),
      build: settings.site.buildStamp ?? null,
      platform: {
        name: definition.name,
        definition: definition.definition?.file ?? null,
        fingerprint: definition.definition?.fingerprint() ?? null,
      },
      store: recordedStore(address),
      envFiles: options.envFiles ?? [],
      schedule: schedule !== undefined,
      urls,
    } as const
    record(options, own)
    const removePointer = point(options)
    opened.push(async () => removePointer())
    log.info('listening', 'the services listen', urls)
    return {
      urls,
      storeLost,
      async close({ graceMs = 0, deadlineMs = DEADLINE_MS } = {}) {
        log.info('stopping', 'the daemon stops: requests and messages in flight end first', {
          graceMs,
          deadlineMs,
        })
        // Before health says that the daemon stops: that is no fault of any probe.
        await recorder?.stop()
        platform.announceStop()
        for (const listener of listeners.values()) listener.drain()
        if (graceMs > 0) await clock.sleep(graceMs)
        await unwind(deadlineMs)
        const cut = platform.sending()
        if (cut > 0)
          log.warn(
            'stop_cut',
            'the deadline cut messages that were being sent: each may be sent once more, under the same Message-ID',
            { messages: cut },
          )
        record(options, { ...own, stoppedAt: new Date(clock.now()).toISOString() })
        log.info('stopped', 'the daemon has stopped', { mayBeRepeated: cut })
      },
    }
  } catch (error) {
    await unwind()
    if (!told) {
      const met = error instanceof Error ? error.name : 'unknown'
      const why =
        error instanceof ListenError ? error.message : `it met a fault (${met}), which its output names`
      await refused('start_refused', why)
    }
    throw error
  }
}

/** Opens the store, and makes sure that it belongs to this platform. */
async function openOwned(
  { platform: { name }, adopt }: DaemonOptions,
  address: StoreAddress,
  options: Parameters<typeof openStore>[1],
): Promise<Store> {
  const store = await openStore(address, options)
  try {
    assertOwner(await store.owner.claim(name, { adopt }), name)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Stop waiting for work that misses its deadline: a process that hangs is killed, and then nothing is closed. */
const giveUp = () => {}

/** This machine's history, and with it the one that all machines of the store share. */
async function openHistoryOf(
  options: DaemonOptions,
  address: StoreAddress,
  onLost: OnLost,
): Promise<History> {
  const own = options.history ?? (await openHistoryFile(options, onLost))
  const { clock, dataFolder, log } = options
  const shared = await openSharedHistory(address, log)
  // Two daemons of one machine have a folder each.
  const recorder = `${hostname()}:${path.resolve(dataFolder)}`
  return shared ? shareHistory({ own, shared, recorder, clock }) : own
}

/** Opens the history file, or a history in memory (with a warning) if that fails, so that the services can still run. */
async function openHistoryFile({ dataFolder, log }: DaemonOptions, onLost: OnLost): Promise<History> {
  return openHistory(path.join(dataFolder, 'history.sqlite'), onLost).catch((error: unknown) => {
    log.warn('history_in_memory', 'the health history is kept in memory and ends with the process', {
      reason:
        error instanceof Error && error.name === 'StoreOpenError'
          ? error.message
          : 'its file cannot be opened',
    })
    return openHistory(undefined)
  })
}

/** Writes daemon.json for the commands that use this folder's store. The daemon also runs without it. */
function record({ dataFolder, log }: DaemonOptions, own: DaemonRecord): void {
  try {
    recordDaemon(dataFolder, own)
  } catch (error) {
    log.warn(
      'record_not_written',
      'daemon.json cannot be written, so commands cannot compare their store with this one',
      {
        fault: codeOf(error) || 'unknown',
      },
    )
  }
}

function placesOf({ platform, envFiles = [], dataFolder }: DaemonOptions): Places {
  const definition = platform.definition?.file ?? null
  return { definition, envFiles, dataFolder: path.resolve(dataFolder) }
}

/** Says where this daemon is. Commands that are run in another folder then need its options. */
function point({ pointerFolder, dataFolder, log }: DaemonOptions): () => void {
  if (pointerFolder === undefined) return () => {}
  try {
    return leavePointer(pointerFolder, dataFolder)
  } catch (error) {
    log.info('pointer_not_written', 'commands in other folders do not find this daemon: name its options', {
      folder: pointerFolder,
      fault: codeOf(error) || 'unknown',
    })
    return () => {}
  }
}

/**
 * The address variable of each service that listens here, if the environment leaves it open: the listener's URL is
 * used.
 */
function ownAddresses({ services }: ResolvedPlatform, urls: RunningDaemon['urls']): Record<string, string> {
  return Object.fromEntries(
    services.flatMap(({ name, address: [variable] = [] }) => {
      const url = urls[name]
      return url === undefined || variable === undefined ? [] : [[variable, url]]
    }),
  )
}

function present(env: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || value.trim() === '' ? [] : [[name, value]],
    ),
  )
}
