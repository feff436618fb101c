import { succeeds } from '../../core/calls.ts'
import {
  type DaemonRecord,
  isRunning,
  reachedUrls,
  readRecord,
  recordFile,
} from '../../core/daemon-record.ts'
import { HOUR_MS } from '../../core/durations.ts'
import { type Environment, readSettings } from '../../core/env/settings.ts'
import { probeRemote, type RemoteHealth, type RemoteProbeInput } from '../../core/health/prober.ts'
import { isRefused } from '../../core/health/verdict.ts'
import { rootCauses } from '../../core/incidents/causes.ts'
import { prerequisitesOf } from '../../core/incidents/prerequisites.ts'
import { attempt, isRecord, jsonObject } from '../../core/is-record.ts'
import { heldTogether, type Pause } from '../../core/mail/holds.ts'
import { readWhole } from '../../core/regular-file.ts'
import { splitList } from '../../core/secret.ts'
import { trimEnd } from '../../core/trim-end.ts'
import { alertChannelsOf } from '../command.ts'
import { CommandError, type Context, dataFolder, platformText, wrongUsage } from '../context.ts'
import type { DocumentOf } from '../documents/documents.ts'
import { assertNotDenied, loadEnvironment } from '../environment.ts'
import type { STORE, Values } from '../inputs.ts'
import { agoText, iso, labelled } from '../output/text.ts'

export type PlatformStatus = Omit<DocumentOf<'status'>, 'version'>

/** As long as `health` waits. */
const PATIENCE_MS = 5000
const LARGEST_PAGE_BYTES = 1024 * 1024
/** The worst first. */
const STATES = ['stopped', 'unreached', 'failing', 'degraded'] as const
/** That the status page knows. */
const PAGE_STATES = ['failing', 'degraded', 'ok'] as const
const ALERT_VARIABLES: Readonly<Record<string, string>> = {
  webhook: 'ALERT_WEBHOOK_URL',
  escalation: 'ALERT_ESCALATION_URL',
  mail: 'ALERT_EMAIL_TO',
}

export async function gatherStatus(context: Context, options: Values<typeof STORE>): Promise<PlatformStatus> {
  const folder = dataFolder(context, options.data)
  const record = readRecord(folder)
  const { dataHint, refuseForeignRecord } = await import('../running-daemons.ts')
  if (record === undefined) {
    assertNotDenied(recordFile(folder))
    const { refused = 'see its log' } = jsonObject(attempt(() => readWhole(recordFile(folder))) ?? '')
    const hint = dataHint(context.env)
    throw wrongUsage(`no daemon has started with the data folder ${folder} (${refused}): ${hint}.`)
  }
  refuseForeignRecord(folder, record, 'status')
  const env = await environmentOf(context, options.envFile, record)
  // Earlier starts are for the daemon's own alert.
  const others = (record.others ?? []).filter(isRunning).map(({ starts: _, ...one }) => one)
  const [token] = splitList(env.HEALTH_DEEP_TOKEN ?? '')
  const answers = await Promise.all(
    [record, ...others].flatMap((one) =>
      context.platform.services.flatMap(({ name: service, health }) => {
        const { [service]: url } = reachedUrls(one)
        if (url === undefined) return []
        return isRunning(one)
          ? answerOf(context, { service, url, health, token })
          : { service, url, health: undefined }
      }),
    ),
  )
  const services = await serviceReports(context, env, answers)
  const { starts: _, ...own } = record
  const channels = await alertChannelsOf(context, env)
  return {
    daemon: { ...own, ...(others.length > 0 && { others }), running: isRunning(record) },
    state: STATES.find((state) => services.some((one) => one.state === state)) ?? 'ok',
    services,
    store: await storeStatus(context, env, folder, record),
    alerts: channels.map(({ name }) => ALERT_VARIABLES[name] ?? name),
  }
}

async function environmentOf(context: Context, named: readonly string[], record: DaemonRecord) {
  if (named.length > 0) return (await loadEnvironment(context, named)).env
  const readable: string[] = []
  for (const file of record.envFiles)
    if (await succeeds(loadEnvironment(context, [file]))) readable.push(file)
    else context.stderr.write(`not read: ${file}, which the daemon was started with\n`)
  return (await loadEnvironment(context, readable)).env
}

interface Answer extends Pick<RemoteProbeInput, 'service' | 'url'> {
  /** Undefined: the daemon is not running. */
  readonly health: RemoteHealth | undefined
  /** What the status page says of a service that gives its deep health to nobody without the token. */
  readonly page?: (typeof PAGE_STATES)[number] | 'unknown'
}

async function answerOf(
  { clock, signal }: Context,
  target: Pick<RemoteProbeInput, 'service' | 'url' | 'health' | 'token'>,
): Promise<Answer> {
  const asked = { ...target, timeoutMs: PATIENCE_MS, clock, signal }
  const deep = await probeRemote({ ...asked, deep: true })
  if (!isRefused(deep)) return { ...target, health: deep }
  // Without the token, what a visitor may know is better than nothing: the shallow answer, and what the page says.
  const { exchange } = await import('../../core/network/exchange.ts')
  const page = `${trimEnd(target.url, '/')}/status.json`
  const get = { method: 'GET', headers: {}, signal } as const
  const [health, answer] = await Promise.all([
    probeRemote({ ...asked, deep: false }),
    exchange(page, get, LARGEST_PAGE_BYTES, PATIENCE_MS).catch(() => undefined),
  ])
  const { services } = jsonObject(answer?.text ?? '')
  const said = [services].flat().find((one) => isRecord(one) && one.service === target.service)
  const state = PAGE_STATES.find((one) => isRecord(said) && said.state === one) ?? 'unknown'
  return { ...target, health, page: state }
}

/** What each service answered. A probe that fails because of another one names it. */
async function serviceReports({ platform }: Context, env: Environment, answers: readonly Answer[]) {
  const failing = answers.flatMap(({ service, health }) =>
    Object.entries(health?.reached ? health.report.probes : {}).flatMap(([probe, { state }]) =>
      state === 'failing' ? [{ service, probe }] : [],
    ),
  )
  const roots = rootCauses(failing, prerequisitesOf(platform, readSettings(platform, env)))
  return answers.map(({ service, url, health, page }): PlatformStatus['services'][number] => {
    if (health === undefined) return { service, url, state: 'stopped' }
    if (!health.reached) return { service, url, state: 'unreached', reason: health.reason }
    const { state, probes } = health.report
    const reasons = Object.entries(probes).flatMap(([probe, { state: found, reason = found }]) => {
      if (found !== state || state === 'ok') return []
      const one = failing.find((each) => each.service === service && each.probe === probe)
      const causes = (one && roots.get(one)?.filter((root) => root !== one)) ?? []
      const because =
        causes.length === 0 ? '' : ` (because of ${causes.map((cause) => cause.probe).join(', ')})`
      return [`${probe}: ${reason}${because}`]
    })
    if (page !== undefined)
      reasons.push(`its reasons need the service’s HEALTH_DEEP_TOKEN; the status page says ${page}`)
    const isWorse = page === 'failing' || (page === 'degraded' && state === 'ok')
    return { service, url, state: isWorse ? page : state, reason: reasons.join('; ') || undefined }
  })
}

async function storeStatus(context: Context, env: Environment, folder: string, record: DaemonRecord) {
  const { kind, location } = record.store
  try {
    const { openLocal } = await import('../local.ts')
    const { platform, close } = await openLocal(context, env, folder)
    const read = async () => {
      const store = await platform.store()
      const [{ version, latest, backupAt }, lastHour, counts, paused, lastMail, incidents] =
        await Promise.all([
          store.status(),
          store.lastHour(),
          (await platform.course()).counts(),
          store.sending.holds(),
          store.sending.lastMail(),
          store.incidents.list(0),
        ])
      const open = incidents.map(({ id, cause, openedAt, reason }) => ({ id, cause, openedAt, reason }))
      return { kind, location, version, latest, backupAt, lastHour, counts, paused, lastMail, open }
    }
    return await read().finally(close)
  } catch (error) {
    if (error instanceof CommandError) return { kind, location, fault: error.message }
    const { storeFaultReason } = await import('../../core/errors.ts')
    return { kind, location, fault: storeFaultReason(error) }
  }
}

type StoreReport = Extract<PlatformStatus['store'], { counts: unknown }>

export function statusText(
  { daemon, services, store, alerts }: PlatformStatus,
  /** `platform`: which one this command is for, if the daemon did not record a definition. */
  { now, platform }: { readonly now: number; readonly platform: string },
): string {
  const row = (label: string, text: string) => [label, text] as const
  const rows = [
    row('platform', daemon.platform?.definition ? platformText(daemon.platform) : platform),
    row('daemon', daemonText(daemon, now)),
    ...(daemon.others ?? []).map((other) =>
      row('daemon too', `${daemonText({ ...other, running: true }, now)}, with the same folder`),
    ),
    ...services.map(({ service, state, url, reason }) =>
      row(service, `${state}, ${url}${reason === undefined ? '' : `: ${reason}`}`),
    ),
    row('store', `${store.kind} ${store.location}${'fault' in store ? `: ${store.fault}` : ''}`),
  ]
  if (!('fault' in store)) {
    const { counts, version, latest, backupAt, lastHour, paused, lastMail, open } = store
    const unseen = store.kind === 'postgres' ? 'by PostgreSQL’s own tools' : 'never by platformctl db backup'
    rows.push(
      ['schema', version === latest ? `${version}, up to date` : `${version}; this build has ${latest}`],
      ['backup', backupAt === undefined ? unseen : agoText(backupAt, now)],
      ['schedule', scheduleText(daemon, lastHour, now)],
      ['backlog', backlogText(counts, now)],
      ['problems', problemsText(counts, open)],
      ['last mail', lastMailText(lastMail, now)],
      ...heldTogether(paused).map(({ streams, at, reason }) =>
        row('paused', `${streams.join(', ')}, since ${iso(at)}: ${reason}; platformctl mail resume`),
      ),
    )
  }
  const silent = 'none in this environment; problems show in the log, on the status page and in /metrics'
  rows.push(
    row('env files', daemon.envFiles.join(', ') || 'none: its settings come from its process environment'),
    row('alerts', alerts.join(', ') || silent),
  )
  return labelled(rows, 11)
}

function daemonText(daemon: PlatformStatus['daemon'], now: number): string {
  const build = daemon.build === null ? '' : `, build ${daemon.build}`
  if (daemon.running)
    return `running as process ${daemon.pid} since ${daemon.startedAt} (${agoText(Date.parse(daemon.startedAt), now)})${build}`
  return daemon.stoppedAt === undefined
    ? `not running; it ended without stopping in order, after ${daemon.startedAt}${build}`
    : `stopped ${agoText(Date.parse(daemon.stoppedAt), now)}${build}`
}

function scheduleText(daemon: PlatformStatus['daemon'], lastHour: string | undefined, now: number) {
  const { running, others = [], ...own } = daemon
  const last = lastHour === undefined ? 'no hour handled yet' : `last hour ${lastHour}:00Z`
  const pids = [...(running ? [own] : []), ...others].filter(({ schedule }) => schedule).map(({ pid }) => pid)
  if (pids.length > 0) return `on in process ${pids.join(' and ')}, every minute, ${last}`
  const isHandled = lastHour !== undefined && lastHour >= new Date(now - HOUR_MS).toISOString().slice(0, 13)
  return `off, ${last}: ${isHandled ? 'another process of this store runs it, or did' : 'something else must call the dispatch endpoint'}`
}

function lastMailText({ sentAt, refused, failed }: StoreReport['lastMail'], now: number): string {
  const of = (what: string, found: Pause | undefined) =>
    found ? [`${what} ${agoText(found.at, now)}: ${found.reason}`] : []
  const sent = sentAt === undefined ? 'none sent lately' : `sent ${agoText(sentAt, now)}`
  return [sent, ...of('refused', refused), ...of('failed', failed)].join('; ')
}

function backlogText({ dueNow, waiting, nextTryAt, oldestDueAt }: StoreReport['counts'], now: number) {
  if (dueNow + waiting === 0) return 'nothing is due'
  const oldest = oldestDueAt === undefined ? '' : `, the oldest due ${agoText(oldestDueAt, now)}`
  const backoff =
    waiting === 0 || nextTryAt === undefined ? '' : `; ${waiting} after a failure, next try ${iso(nextTryAt)}`
  return `${dueNow} due${oldest}${backoff}`
}

function problemsText({ parked, unknown }: StoreReport['counts'], open: StoreReport['open']): string {
  const said = open.map(
    ({ cause, openedAt, reason = 'it gave no reason' }) => `${cause} since ${iso(openedAt)}: ${reason}`,
  )
  if (open.length > 0) said.push('platformctl alert list shows these alerts')
  if (parked + unknown > 0)
    said.push(`${parked} parked, ${unknown} unknown: platformctl course status lists them`)
  return said.join('; ') || 'none'
}
