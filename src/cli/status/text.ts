import { HOUR_MS } from '../../core/durations.ts'
import { heldTogether, type Pause } from '../../core/mail/holds.ts'
import { platformText } from '../context.ts'
import { agoText } from '../output/text.ts'
import type { PlatformStatus, ServiceReport } from './gather.ts'

type StoreReport = Extract<PlatformStatus['store'], { counts: unknown }>

/** The whole platform on one screen: a label and a sentence a line. */
export function statusText(
  { daemon, services, store, alerts }: PlatformStatus,
  /** `platform`: which one this command is for, if the daemon did not record a definition. */
  { now, platform }: { readonly now: number; readonly platform: string },
): string {
  const rows: [string, string][] = [
    ['platform', daemon.platform?.definition ? platformText(daemon.platform) : platform],
    ['daemon', daemonText(daemon, now)],
    ...(daemon.others ?? []).map((other): [string, string] => [
      'daemon too',
      `${daemonText({ ...other, running: true }, now)}, with the same folder`,
    ]),
    ...services.map((one): [string, string] => [one.service, serviceText(one)]),
    ['store', `${store.kind} ${store.location}${'fault' in store ? `: ${store.fault}` : ''}`],
  ]
  if (!('fault' in store)) {
    const { counts, version, latest, backupAt, lastHour, paused, lastMail } = store
    rows.push(
      ['schema', version === latest ? `${version}, up to date` : `${version}; this build has ${latest}`],
      ['backup', backupAt === undefined ? 'never by platformctl db backup' : agoText(backupAt, now)],
      ['schedule', scheduleText(daemon, lastHour, now)],
      ['backlog', backlogText(counts, now)],
      ['problems', problemsText(counts)],
      ['last mail', lastMailText(lastMail, now)],
      ...heldTogether(paused).map(({ streams, at, reason }): [string, string] => [
        'paused',
        `${streams.join(', ')}, since ${new Date(at).toISOString()}: ${reason}; platformctl mail resume`,
      ]),
    )
  }
  rows.push(
    ['env files', daemon.envFiles.join(', ') || 'none: its settings come from its process environment'],
    [
      'alerts',
      alerts.length > 0
        ? alerts.join(', ')
        : 'none; problems show in the log, on the status page and in /metrics',
    ],
  )
  return `${rows.map(([label, text]) => `${label.padEnd(11)}${text}`).join('\n')}\n`
}

function daemonText(daemon: PlatformStatus['daemon'], now: number): string {
  const build = daemon.build === null ? '' : `, build ${daemon.build}`
  if (daemon.running)
    return `running as process ${daemon.pid} since ${daemon.startedAt} (${agoText(Date.parse(daemon.startedAt), now)})${build}`
  return daemon.stoppedAt === undefined
    ? `not running; it ended without stopping in order, after ${daemon.startedAt}${build}`
    : `stopped ${agoText(Date.parse(daemon.stoppedAt), now)}${build}`
}

function serviceText({ url, state, reason }: ServiceReport): string {
  return `${state}, ${url}${reason === undefined ? '' : `: ${reason}`}`
}

function scheduleText(
  { running, others = [], ...own }: PlatformStatus['daemon'],
  lastHour: string | undefined,
  now: number,
): string {
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

function backlogText(
  { dueNow, waiting, nextTryAt, oldestDueAt }: StoreReport['counts'],
  now: number,
): string {
  if (dueNow + waiting === 0) return 'nothing is due'
  const oldest = oldestDueAt === undefined ? '' : `, the oldest due ${agoText(oldestDueAt, now)}`
  const backoff =
    waiting === 0 || nextTryAt === undefined
      ? ''
      : `; ${waiting} after a failure, next try ${new Date(nextTryAt).toISOString()}`
  return `${dueNow} due${oldest}${backoff}`
}

function problemsText({ parked, unknown }: StoreReport['counts']): string {
  return parked + unknown === 0
    ? 'none'
    : `${parked} parked, ${unknown} unknown: platformctl course status lists them`
}
