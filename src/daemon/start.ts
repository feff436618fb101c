import { hostname } from 'node:os'
import { readRecord, recordedStore } from '../core/daemon-record.ts'
import { malformedStoreSentence, rawValue, readSettings } from '../core/env/settings.ts'
import { codeOf, storeFaultReason } from '../core/errors.ts'
import { type Host, systemClock, within } from '../core/host.ts'
import { recentStarts } from '../core/incidents/conditions.ts'
import { recordedPlatform } from '../core/platform.ts'
import { reportError } from '../core/reporting/facade.ts'
import { type Service, WEB } from '../core/service.ts'
import { StoreOpenError } from '../core/store/errors.ts'
import type { Store } from '../core/store/store.ts'
import { announceEnvironment } from './announce.ts'
import { openHistoryOf } from './history.ts'
import { ListenError, type Listener, listen } from './listen.ts'
import { openOwnedStore } from './open/stores.ts'
import {
  type Closing,
  closeAll,
  type DaemonOptions,
  point,
  record,
  replicaOf,
  storeAddress,
} from './options.ts'
import { openPlatform } from './platform.ts'
import { tellRefusal } from './refusal.ts'
import { createPing, startDispatching } from './schedule.ts'
import { keepWatch } from './watch.ts'

export type RunningDaemon = Awaited<ReturnType<typeof startDaemon>>

/** As long as a lease: by then every send in flight is answered or given up. */
const DEADLINE_MS = 90_000
const STORE_LOST = 'the disk did not confirm a write: its file was closed, and the daemon must end'
const STOP_CUT =
  'the deadline cut messages that were being sent: each may be sent once more, under the same Message-ID'

/** Validates, opens the store, listens, serves, and runs the schedule unless that is turned off. */
export async function startDaemon(options: DaemonOptions) {
  const { platform: definition, services, clock, random, log, dataFolder } = options
  const host: Host = { clock, timer: systemClock, random, log }
  const { promise: storeLost, resolve: endForStore } = Promise.withResolvers<void>()
  const onLost = (cause: unknown) => {
    log.error('store_lost', STORE_LOST, { fault: codeOf(cause) || 'unknown' })
    reportError(cause)
    endForStore()
  }
  const closing: Closing = {}
  const [malformed] = readSettings(definition, options.env).store.malformed
  let isStoreRefused = malformed !== undefined
  try {
    if (malformed !== undefined) throw new StoreOpenError(malformedStoreSentence(malformed))
    const settings = announceEnvironment(options)
    const { poolSize } = settings.store
    const address = storeAddress(settings, dataFolder)
    isStoreRefused = true
    const opening = { poolSize, log, onLost, before: readRecord(dataFolder)?.store }
    const store = await openOwnedStore(address, definition.name, opening, options.adopt)
    isStoreRefused = false
    closing.store = () => store.close()
    const history = await openHistoryOf(options, address, onLost)
    closing.history = () => history.close()
    const listeners = await listenAll(options, closing)
    const at = options.host.includes(':') ? `[${options.host}]` : options.host
    const urls = Object.fromEntries([...listeners].map(([name, { port }]) => [name, `http://${at}:${port}`]))
    const platform = openPlatform({
      env: withOwnAddresses(options, urls),
      platform: definition,
      store,
      clock,
      random,
      log,
      history,
      onLost,
      sources: {
        replica: replicaOf(options),
        files: [...(options.envFiles ?? []), ...(options.secretFiles ?? [])],
        sourceOf: (name) =>
          rawValue(options.env, name) === undefined
            ? 'default'
            : options.isFromFile?.(name)
              ? 'file'
              : 'environment',
      },
    })
    // Work that misses the deadline is waited for no longer: a process that hangs is killed, and then nothing is closed.
    closing.platform = (deadlineMs) => within(deadlineMs, platform.close(), () => {})
    // Report a table that cannot be created now, not to the first visitor. The next batch of events tries again.
    if (services.includes(WEB)) {
      await platform.analytics?.().catch((error: unknown) => {
        const reason = error instanceof StoreOpenError ? error.message : storeFaultReason(error)
        log.error('analytics_not_opened', 'visitors’ events are not stored', { reason })
      })
      await platform.mailService.mailer.prepare()
    }
    for (const [name, listener] of listeners) {
      const service = platform.services.get(name)
      if (service) listener.serve(service.handler, service.poll)
    }
    if (services.includes(WEB)) void warnOfRemovedCourses(options, store)
    const schedule = options.schedule && services.includes(WEB)
    const closeListeners = closing.traffic
    let scheduleStalledMs = (): number | undefined => undefined
    if (schedule) {
      const ping = settings.heartbeatPing && createPing(host, settings.heartbeatPing)
      closing.ping = () => ping?.stop()
      const hours = startDispatching(host, platform, store, ping?.ping)
      scheduleStalledMs = hours.stalledMs
      closing.traffic = (deadlineMs) =>
        Promise.all([closeListeners?.(deadlineMs), within(deadlineMs, hours.stop(), () => {})])
    }
    const starts = recentStarts(readRecord(dataFolder)?.starts ?? [], clock.now())
    // Counted by web alone: services with processes of their own in one folder are one start.
    if (services.includes(WEB)) starts.push(clock.now())
    const opened = { store, history, platform, scheduleStalledMs, starts }
    const recorder = keepWatch(host, options, settings, opened, closing)
    const own = {
      version: 1,
      pid: process.pid,
      host: hostname(),
      startedAt: new Date(clock.now()).toISOString(),
      starts,
      build: settings.site.buildStamp ?? null,
      platform: recordedPlatform(definition),
      store: recordedStore(address),
      envFiles: options.envFiles ?? [],
      schedule,
      urls,
    } as const
    record(options, own)
    closing.pointer = point(options)
    log.info('listening', 'the services listen', urls)
    return {
      /** Where each service listens; a service that does not run here is absent. */
      urls,
      /** Resolves when a disk did not confirm a write: end this process then, so that a new one opens its files anew. */
      storeLost,
      /**
       * Ends in order: health fails, `graceMs` pass (so that a load balancer sees it), nothing new is accepted, requests
       * and messages in flight finish or meet `deadlineMs`, the store is checkpointed and closed.
       */
      async close({ graceMs = 0, deadlineMs = DEADLINE_MS } = {}) {
        const stops = 'the daemon stops: requests and messages in flight end first'
        log.info('stopping', stops, { graceMs, deadlineMs })
        // Before health says that the daemon stops: that is no fault of any probe.
        await recorder.stop()
        platform.announceStop()
        for (const listener of listeners.values()) listener.drain()
        if (graceMs > 0) await clock.sleep(graceMs)
        await closeAll(host, closing, deadlineMs)
        const cut = platform.mailService.sending()
        if (cut > 0) log.warn('stop_cut', STOP_CUT, { messages: cut })
        // A service that shares the folder may have recorded a later start.
        const latest = readRecord(dataFolder)?.starts ?? starts
        record(options, { ...own, starts: latest, stoppedAt: new Date(clock.now()).toISOString() })
        log.info('stopped', 'the daemon has stopped', { mayBeRepeated: cut })
      },
    }
  } catch (error) {
    await closeAll(host, closing, 0)
    await tellRefusal(host, options, error, isStoreRefused)
    throw error
  }
}

/** A store that fails now is reported by its probe. */
async function warnOfRemovedCourses({ platform, log }: DaemonOptions, { course: courses }: Store) {
  const known = platform.courses.map(({ id }) => id)
  for (const { course, people } of await courses.removedCourses(known).catch(() => [])) {
    const [are, their] = people === 1 ? ['person is', 'the enrolment'] : ['people are', 'their enrolments']
    const cause = `${people} ${are} in ${course}, which the definition does not have`
    log.warn('course_removed', `${cause}: put it back, or cancel ${their}`, { course, people })
  }
}

async function listenAll({ platform, services, host, ports }: DaemonOptions, closing: Closing) {
  const listeners = new Map<Service, Listener>()
  closing.traffic = (deadlineMs) =>
    Promise.all([...listeners.values()].map((listener) => listener.close({ deadlineMs })))
  for (const service of services) {
    const port = ports[service] ?? platform.services.find(({ name }) => name === service)?.port ?? 0
    const listener = await listen(host, port).catch((error: unknown) => {
      throw new ListenError(service, port, error)
    })
    listeners.set(service, listener)
  }
  return listeners
}

/** The environment, with the URL of each listener in the address variable of its service where that is not set. */
function withOwnAddresses({ env, platform }: DaemonOptions, urls: Readonly<Record<Service, string>>) {
  const own = platform.services.flatMap(({ name, address: [variable] = [] }) => {
    const url = urls[name]
    return variable && url && rawValue(env, variable) === undefined ? [[variable, url]] : []
  })
  return { ...env, ...Object.fromEntries(own) }
}
