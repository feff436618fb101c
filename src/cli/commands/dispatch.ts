import type { DispatchOutcome, DispatchResult } from '../../core/course/dispatch.ts'
import { OUT_OF_TIME, OUTCOMES, STOPPED } from '../../core/course/dispatch.ts'
import { type DispatchRequest, FIELD_LIST, requestIn } from '../../core/course/dispatch-request.ts'
import { nextDay, type Subscription } from '../../core/course/subscription.ts'
import { shellWord } from '../../core/daemon-record.ts'
import { durationText } from '../../core/durations.ts'
import type { Environment } from '../../core/env/settings.ts'
import { PATHS } from '../../core/paths.ts'
import { type Answer, command, type Define } from '../command.ts'
import { type Context, canSpin, EXIT, openProgress, wrongUsage } from '../context.ts'
import { loadEnvironment } from '../environment.ts'
import { ENV_FILE, type Values, value, wholeNumber } from '../inputs.ts'
import { compact, iso, thousands } from '../output/text.ts'

/** First the fields of a `DispatchRequest`, which the endpoint takes too; then options of the command alone. */
const INPUTS = {
  ...(Object.fromEntries(
    FIELD_LIST.map(({ option, help, most }) => [option, most ? value(help, wholeNumber(1, most)) : help]),
  ) as Record<never, never>),
  '--drain': 'send without a limit, at most one lesson to each subscription, with progress on standard error',
  '--dry-run': 'show what is due and send nothing (needs --local)',
  '--url <url>': 'address of the web service (default: NEXT_PUBLIC_SITE_URL)',
  '--local': 'dispatch from this machine’s store',
  '--data <folder>': 'with --local: the data folder, when STORE_URL is not set (default: .platformctl)',
  ...ENV_FILE,
} as const
type Options = Values<typeof INPUTS> & DispatchRequest

export interface Source {
  /** One dispatch call; a remote one tells its progress only when it has ended. */
  readonly call: (onProgress: (outcome: DispatchOutcome) => void) => Promise<DispatchResult>
  readonly remaining?: () => Promise<number>
  readonly due?: () => Promise<readonly Subscription[]>
  readonly close: () => Promise<void>
}

export const define: Define = () =>
  command({
    description:
      'Send the lessons that are due: through the dispatch endpoint (secret from EMAIL_DISPATCH_SECRET), or with --local from this machine’s store.',
    exits:
      '0 sent what was due, 1 stopped or some lessons were not sent (with --drain also those that wait for their next attempt), 2 wrong usage, 3 not reached or refused.',
    examples: [
      '--limit 100 --url https://www.example.com',
      '--local --dry-run',
      '--local --drain --env-file .env',
    ],
    document: 'dispatch',
    inputs: INPUTS,
    async run(context, values) {
      const { local, url, dryRun, envFile } = values
      if (local && url !== undefined) throw wrongUsage('choose one of --local and --url.')
      if (dryRun && !local) throw wrongUsage('--dry-run looks into the store, so it needs --local.')
      const { env } = await loadEnvironment(context, envFile)
      const source = await (local ? localSource : remoteSource)(context, env, values)
      try {
        if (dryRun) return await dueNow(source)
        const began = context.clock.monotonic()
        return resultOf(await drain(context, source, values), values, context.clock.monotonic() - began)
      } finally {
        await source.close()
      }
    },
  })

/** Dispatch from this machine's store: the same code path as the endpoint and the schedule. */
async function localSource(context: Context, env: Environment, options: Options): Promise<Source> {
  const { openLocal } = await import('../local.ts')
  const { platform, close } = await openLocal(context, env, options.data)
  const course = await platform.course()
  const request = { ...requestIn(options), ...(options.drain && { limit: Number.POSITIVE_INFINITY }) }
  return {
    call: (onProgress) => course.dispatch({ ...request, signal: context.signal, onProgress }),
    remaining: async () => (await course.backlog(request)).due,
    due: () => course.due(request),
    close,
  }
}

export async function remoteSource(context: Context, env: Environment, options: Options): Promise<Source> {
  const { callDispatch, webEndpoint } = await import('../web-endpoint.ts')
  const endpoint = webEndpoint(context, env, options.url, PATHS.dispatch)
  const { searchParams } = endpoint.url
  for (const [name, value] of Object.entries(requestIn(options)))
    if (value !== undefined) searchParams.set(name, String(value))
  // One name for all calls of a drain: no subscription gets two lessons in it.
  if (options.drain) searchParams.set('run', Buffer.from(context.random.bytes(12)).toString('base64url'))
  return { call: () => callDispatch(context, endpoint), close: async () => {} }
}

/** What a call may send, longest due first, without claiming anything. */
async function dueNow(source: Source): Promise<Answer<'dispatch'>> {
  const found = (await source.due?.()) ?? []
  const due = found.map((one) => ({ id: one.id, day: nextDay(one), nextAttemptAt: one.nextAttemptAt }))
  const lines = due.map(
    ({ id, day, nextAttemptAt }) => `day ${day} of ${id}, due since ${iso(nextAttemptAt ?? 0)}\n`,
  )
  const all = Math.max(due.length, (await source.remaining?.()) ?? 0)
  const shown = all > due.length ? `, the first ${due.length} shown` : ''
  const end = all === 0 ? 'nothing is due' : `${all} due${shown}; nothing was sent`
  return { json: { due }, text: `${lines.join('')}${end}\n` }
}

function resultOf(total: DispatchResult, options: Options, tookMs: number): Answer<'dispatch'> {
  const { processed, sent, failed, unknown, remaining, waiting = 0, nextTryAt, reason } = total
  const unsent = total.results.flatMap(({ sent, day, subscription, reason: why = 'no reason given' }) =>
    sent ? [] : [`not sent: day ${day} of ${subscription}: ${why}\n`],
  )
  const summary = compact(
    `${sent} sent${processed === 0 ? '' : ` in ${elapsedText(tookMs / 1000)}`}`,
    failed > 0 && `${failed} failed`,
    unknown > 0 && `${unknown} unknown`,
    `${remaining} still due`,
    // Lessons in backoff are due, too: a drain that leaves them has not sent all.
    waiting > 0 && `${waiting} waiting after a failure (next try ${nextTryAt ?? 'unknown'})`,
  )
  const why = reason === undefined ? '' : `: ${reason}`
  const wasIdle = processed + remaining + waiting === 0
  const undone = failed + unknown > 0 || (reason !== undefined && !wasIdle) || (options.drain && waiting > 0)
  return {
    // JSON knows no infinity: a run without a limit has none.
    json: { ...total, limit: Number.isFinite(total.limit) ? total.limit : null },
    text: `${unsent.join('')}${summary.join(', ')}${why}\n${nextStep(total, options)}`,
    exit: undone ? EXIT.failed : EXIT.passed,
  }
}

function nextStep(total: DispatchResult, options: Options): string {
  const { drain, local, url, data } = options
  const files = options.envFile.map((file) => ` --env-file ${shellWord(file)}`).join('')
  const store = data === undefined ? files : `${files} --data ${shellWord(data)}`
  if (total.failed + total.unknown > 0)
    return local
      ? `Next: platformctl course status${store} shows what waits for a decision; platformctl preflight --deep${files} looks for the cause.\n`
      : 'Next: platformctl course status, on the machine of the store, shows what waits for a decision.\n'
  if (total.reason !== undefined || total.remaining === 0 || drain) return ''
  const where = local ? ` --local${store}` : `${url === undefined ? '' : ` --url ${url}`}${files}`
  return `Next: platformctl dispatch --drain${where} sends the rest.\n`
}

const BAR = 24
/** How often a drain reports its progress when it does not run in a terminal. */
const LINE_EVERY_MS = 10_000
const SHOW_EVERY_MS = 100
/** A summary lists at most this many of the lessons that were not sent, the latest ones. */
const MOST_RESULTS = 1000

/** One call, or with --drain calls of one run until it finds nothing more; the totals of all, with progress on standard error. */
export async function drain(context: Context, source: Source, options: Pick<Options, 'drain'>) {
  const began = context.clock.monotonic()
  const progress = await openProgress(context, options.drain ? 'draining' : 'dispatching')
  const done = { sent: 0, failed: 0, unknown: 0 }
  let left = await source.remaining?.()
  let shownAt = began
  const line = () => progressLine({ ...done, left, seconds: (context.clock.monotonic() - began) / 1000 })
  const isTime = (every: number) => {
    const now = context.clock.monotonic()
    if (now - shownAt < every) return false
    shownAt = now
    return true
  }
  const onProgress = (outcome: DispatchOutcome) => {
    done[outcome] += 1
    // An estimate: other dispatchers may work on the same backlog, and more lessons become due meanwhile.
    if (left !== undefined) left = Math.max(0, left - 1)
    if (isTime(SHOW_EVERY_MS)) progress.show(line())
  }
  try {
    let total = await source.call(onProgress)
    for (let last = total; goesOn(last, options, context.signal); ) {
      for (const outcome of OUTCOMES) done[outcome] = total[outcome]
      left = total.remaining
      progress.show(line())
      if (!canSpin(context) && isTime(LINE_EVERY_MS)) context.stderr.write(`${line()}\n`)
      last = await source.call(onProgress)
      total = sum(total, last)
    }
    const isCut = context.signal.aborted && total.reason === undefined && total.remaining > 0
    return isCut ? { ...total, reason: STOPPED } : total
  } finally {
    progress.end()
  }
}

function goesOn(last: DispatchResult, { drain: repeat }: Pick<Options, 'drain'>, signal: AbortSignal) {
  // A call below its limit ends the drain: what is still due is the next lesson of somebody who got one in this run.
  const isFull = last.processed >= last.limit && last.reason === undefined
  return repeat === true && (isFull || last.reason === OUT_OF_TIME) && !signal.aborted
}

function sum(total: DispatchResult, last: DispatchResult): DispatchResult {
  const counts = (['processed', ...OUTCOMES] as const).map((name) => [name, total[name] + last[name]])
  const results = [...total.results, ...last.results].slice(-MOST_RESULTS)
  return { ...last, ...Object.fromEntries(counts), results }
}

/** `███████░░░ 70 %  7,000 sent, 3 failed, 3,000 left, 950/s, about 4 s` */
export function progressLine(
  at: Readonly<Record<DispatchOutcome | 'seconds', number>> & { readonly left: number | undefined },
): string {
  const { sent, failed, unknown, left, seconds } = at
  const done = sent + failed + unknown
  const rate = seconds > 0 ? done / seconds : 0
  const parts = compact(
    `${thousands(sent)} sent`,
    failed > 0 && `${thousands(failed)} failed`,
    unknown > 0 && `${thousands(unknown)} unknown`,
    left !== undefined && `${thousands(left)} left`,
    rate > 0 && (rate < 10 ? `${rate.toFixed(1)}/s` : `${thousands(Math.round(rate))}/s`),
    rate > 0 && left !== undefined && left > 0 && `about ${elapsedText(left / rate)}`,
  ).join(', ')
  if (left === undefined) return parts
  const share = done / Math.max(1, done + left)
  const full = Math.floor(share * BAR)
  const percent = String(Math.floor(share * 100)).padStart(3)
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${percent} %  ${parts}`
}

/** Rounded up, because somebody waits for it. */
export const elapsedText = (seconds: number) => durationText(Math.max(1, Math.ceil(seconds)) * 1000)
