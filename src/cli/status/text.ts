import { HOUR_MS } from '../../core/durations.ts'
import { heldTogether } from '../../core/mail/holds.ts'
import { agoText } from '../output/amounts.ts'
import { platformText } from '../which-platform.ts'
import type { PlatformStatus, ServiceReport } from './gather.ts'

/** The whole platform on one screen: a label and a sentence a line. */
export function statusText(
  { daemon, services, store, alerts }: PlatformStatus,
  /** `platform`: which one this command is for, if the daemon did not record a definition. */
  { now, platform }: { readonly now: number; readonly platform: string },
): string {
  const rows: [string, string][] = [
    ['platform', daemon.platform?.definition ? platformText(daemon.platform) : platform],
    ['daemon', daemonText(daemon, now)],
    ...services.map((one): [string, string] => [one.service, serviceText(one)]),
    ['store', `${store.kind} ${store.location}${'fault' in store ? `: ${store.fault}` : ''}`],
  ]
  if (!('fault' in store)) {
    const { counts, version, latest, backupAt, lastHour, paused } = store
    rows.push(
      ['schema', version === latest ? `${version}, up to date` : `${version}; this build has ${latest}`],
      ['backup', backupAt === undefined ? 'never by platformctl db backup' : agoText(backupAt, now)],
      ['schedule', scheduleText(daemon.schedule && daemon.running, lastHour, now)],
      ['backlog', backlogText(counts, now)],
      ['problems', problemsText(counts)],
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

function scheduleText(on: boolean, lastHour: string | undefined, now: number): string {
  const last = lastHour === undefined ? 'no hour handled yet' : `last hour ${lastHour}:00Z`
  const next = `${new Date(Math.ceil((now + 1) / HOUR_MS) * HOUR_MS).toISOString().slice(0, 13)}:00Z`
  return on ? `on, ${last}, next ${next}` : `off, ${last}: something else must call the dispatch endpoint`
}

function backlogText(
  {
    dueNow,
    waiting,
    nextTryAt,
    oldestDueAt,
  }: Extract<PlatformStatus['store'], { counts: unknown }>['counts'],
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

function problemsText({
  parked,
  unknown,
}: Extract<PlatformStatus['store'], { counts: unknown }>['counts']): string {
  return parked + unknown === 0
    ? 'none'
    : `${parked} parked, ${unknown} unknown: platformctl course status lists them`
}
