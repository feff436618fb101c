import path from 'node:path'
import { recordFile } from '../../core/daemon-places.ts'
import { type DaemonRecord, isRunning, readRecord } from '../../core/daemon-record.ts'
import type { Environment } from '../../core/env/environment.ts'
import { readSettings } from '../../core/env/settings.ts'
import { probeRemote, type RemoteHealth } from '../../core/health/prober.ts'
import { isRefused } from '../../core/health/verdict.ts'
import { rootsOf } from '../../core/incidents/causes.ts'
import { prerequisitesOf } from '../../core/incidents/prerequisites.ts'
import { splitSecrets } from '../../core/secret.ts'
import type { Service } from '../../core/service.ts'
import { type Context, dataFolder } from '../context.ts'
import type { DocumentOf } from '../documents/documents.ts'
import { assertNotDenied, loadEnvironment } from '../environment.ts'
import { CommandError, wrongUsage } from '../exit.ts'

/** Everything that an operator wants to know at first, as data. */
export type PlatformStatus = Omit<DocumentOf<'status'>, 'version'>
export type ServiceReport = PlatformStatus['services'][number]

/** As long as `health` waits. */
const PATIENCE_MS = 5000
/** The worst first. */
const STATES = ['stopped', 'unreached', 'failing', 'degraded'] as const
const ALERT_CHANNELS = [
  'ALERT_WEBHOOK_URL',
  'ALERT_ESCALATION_URL',
  'ALERT_EMAIL_TO',
  'HEARTBEAT_PING_URL',
] as const

/** Reads what the daemon of a data folder recorded, asks its services, and looks into its store. */
export async function gatherStatus(
  context: Context,
  options: { readonly data: string | undefined; readonly envFile: readonly string[] },
): Promise<PlatformStatus> {
  const folder = dataFolder(context, options.data)
  const record = readRecord(folder)
  if (record === undefined) {
    assertNotDenied(recordFile(folder))
    const { dataHint } = await import('../running-daemons.ts')
    throw wrongUsage(`no daemon has run with the data folder ${folder}: ${dataHint(context.env)}.`)
  }
  const env = await environmentOf(context, options.envFile, record)
  const others = record.others?.filter(isRunning) ?? []
  const [token] = splitSecrets(env.HEALTH_DEEP_TOKEN ?? '')
  const answers = await Promise.all(
    [record, ...others].flatMap((one) =>
      context.platform.services.flatMap(({ name: service, health }) => {
        const url = one.urls[service]
        if (url === undefined) return []
        return isRunning(one)
          ? answerOf(context, { service, url, health, token })
          : { service, url, health: undefined }
      }),
    ),
  )
  const services = await serviceReports(context, env, answers)
  return {
    daemon: { ...record, ...(others.length > 0 && { others }), running: isRunning(record) },
    state: STATES.find((state) => services.some((one) => one.state === state)) ?? 'ok',
    services,
    store: await storeStatus(context, env, options.data, record),
    alerts: ALERT_CHANNELS.filter((name) => env[name]?.trim()),
  }
}

/** The files named, or else those that the daemon was started with, as far as this user may read them. */
async function environmentOf(
  context: Context,
  named: readonly string[],
  record: DaemonRecord,
): Promise<Environment> {
  if (named.length > 0) return (await loadEnvironment(context, named)).env
  const readable: string[] = []
  for (const file of record.envFiles) {
    try {
      await loadEnvironment(context, [file])
      readable.push(file)
    } catch {
      context.stderr.write(`not read: ${file}, which the daemon was started with\n`)
    }
  }
  return (await loadEnvironment(context, readable)).env
}

interface Answer {
  readonly service: Service
  readonly url: string
  /** Undefined: the daemon is not running. */
  readonly health: RemoteHealth | undefined
}

async function answerOf(
  { clock, signal }: Context,
  target: Pick<Parameters<typeof probeRemote>[0], 'service' | 'url' | 'health' | 'token'>,
): Promise<Answer> {
  const asked = { ...target, timeoutMs: PATIENCE_MS, clock, signal }
  const deep = await probeRemote({ ...asked, deep: true })
  // Without the token, what a visitor may know is better than nothing.
  return { ...target, health: isRefused(deep) ? await probeRemote({ ...asked, deep: false }) : deep }
}

/** What each service answered. A probe that fails because of another one names it. */
async function serviceReports(
  { platform }: Context,
  env: Environment,
  answers: readonly Answer[],
): Promise<ServiceReport[]> {
  const failing = answers.flatMap(({ service, health }) =>
    Object.entries(health?.reached ? health.report.probes : {}).flatMap(([probe, { state }]) =>
      state === 'failing' ? [{ service, probe }] : [],
    ),
  )
  const roots = rootsOf(failing, prerequisitesOf(platform, readSettings(platform, env)))
  return answers.map(({ service, url, health }): ServiceReport => {
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
    return { service, url, state, ...(reasons.length > 0 && { reason: reasons.join('; ') }) }
  })
}

async function storeStatus(
  context: Context,
  env: Environment,
  data: string | undefined,
  record: DaemonRecord,
): Promise<PlatformStatus['store']> {
  const { kind, location } = record.store
  try {
    const { openLocal } = await import('../local.ts')
    const { platform, close } = await openLocal(
      context,
      env,
      data ?? path.relative(context.cwd, dataFolder(context, data)),
    )
    try {
      const store = await platform.store()
      const [{ version, latest, backupAt }, lastHour, counts, paused, lastMail] = await Promise.all([
        store.status(),
        store.lastHour(),
        (await platform.course()).counts(),
        store.sending.holds(),
        store.sending.lastMail(),
      ])
      return { kind, location, version, latest, backupAt, lastHour, counts, paused, lastMail }
    } finally {
      await close()
    }
  } catch (error) {
    if (error instanceof CommandError) return { kind, location, fault: error.message }
    const { storeFaultReason } = await import('../../core/store-fault.ts')
    return { kind, location, fault: storeFaultReason(error) }
  }
}
