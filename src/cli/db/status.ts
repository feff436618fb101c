import type { Environment } from '../../core/env/settings.ts'
import type { Context } from '../context.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { agoText, sizeText } from '../output/amounts.ts'
import { printJson } from '../print.ts'
import type { Job } from './job.ts'
import { rowsText, writeLines } from './text.ts'

export async function status({ context, options, env, maintenance }: Job): Promise<ExitCode> {
  const found = await (await maintenance()).status()
  const analytics = await analyticsStatus(context, env)
  if (options.format === 'json')
    return printJson(context, 'db status', { store: found, ...(analytics && { analytics }) })
  const { version, latest, readable, walBytes, verifiedAt } = found
  const schema =
    version === latest
      ? 'up to date'
      : version < latest
        ? `this build brings ${latest}: platformctl db migrate`
        : readable
          ? `newer than this build’s ${latest}, which can run on it`
          : `newer than this build’s ${latest}, which cannot run on it: run the version that wrote it`
  writeLines(context, [
    ['store', `${found.kind} ${found.location}`],
    ['schema', `${version} (${schema})`],
    [
      'size',
      `${sizeText(found.bytes)}${walBytes === undefined ? '' : `, write-ahead log ${sizeText(walBytes)}`}`,
    ],
    ['rows', rowsText(found.counts)],
    [
      'verified',
      verifiedAt === undefined
        ? 'never: platformctl db verify'
        : `${agoText(verifiedAt, context.clock.now())} (${new Date(verifiedAt).toISOString()})`,
    ],
    ...(analytics ? [['analytics', analyticsText(analytics)] as const] : []),
  ])
  return EXIT.passed
}

interface AnalyticsPart {
  readonly table: string | undefined
  readonly location: string
  readonly batches: number
  readonly events: number
  readonly bytes: number | undefined
}

/** The events that ingest has stored beside the store; undefined if no table is configured. */
async function analyticsStatus(context: Context, env: Environment): Promise<AnalyticsPart | undefined> {
  const { findAnalytics } = await import('../analytics-store.ts')
  const found = await findAnalytics(context, env)
  if (found.kind === 'off') return undefined
  const { location } = found
  if (found.kind === 'empty') return { table: undefined, location, batches: 0, events: 0, bytes: undefined }
  try {
    const { table, batches, events, bytes } = await found.store.status()
    return { table, location, batches, events, bytes }
  } finally {
    await found.store.close()
  }
}

function analyticsText({ table, location, batches, events, bytes }: AnalyticsPart): string {
  if (table === undefined) return `nothing stored yet (${location})`
  const size = bytes === undefined ? '' : `, ${sizeText(bytes)}`
  const counted = `${events.toLocaleString('en')} ${events === 1 ? 'event' : 'events'} in ${batches.toLocaleString('en')} ${batches === 1 ? 'batch' : 'batches'}`
  return `${counted}${size} (${table} in ${location})`
}
