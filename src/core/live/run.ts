import { outcomeOfFault } from './fault.ts'
import type { LiveResult, Step, StepOutcome, Target } from './live.ts'

export interface RunInput {
  readonly targets: readonly Target[]
  /** The most that one check may take, and the most that all of them may. */
  readonly limitMs: number
  readonly deadlineMs: number
  readonly monotonic: () => number
  /** Aborted by the user. Checks in progress are then given up. */
  readonly signal: AbortSignal
  /** Called after each check with how many are done, how many there are, and the targets still at work. */
  readonly onProgress?: (done: number, all: number, waiting: readonly string[]) => void
}

/** Runs every target at once, each check under its own limit, all under one deadline. Never rejects. */
export async function runLive(input: RunInput): Promise<readonly LiveResult[]> {
  const { targets, deadlineMs, signal, onProgress } = input
  const over = new AbortController()
  const end = () => over.abort()
  const timer = setTimeout(end, deadlineMs)
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  const all = targets.reduce((sum, { steps }) => sum + (typeof steps === 'string' ? 0 : steps.length), 0)
  const waiting = new Map(
    targets.flatMap(({ name, steps }) => (typeof steps === 'string' ? [] : [[name, steps.length]])),
  )
  let done = 0
  const report =
    (target: Target) =>
    (result: StepOutcome, step: Step, latencyMs?: number): LiveResult => {
      done += 1
      const left = (waiting.get(target.name) ?? 1) - 1
      if (left === 0) waiting.delete(target.name)
      else waiting.set(target.name, left)
      onProgress?.(done, all, [...waiting.keys()])
      return {
        target: target.name,
        check: step.check,
        ...result,
        services: target.services,
        variables: step.variables,
        ...(step.place === undefined ? {} : { place: step.place }),
        ...(latencyMs === undefined ? {} : { latencyMs }),
      }
    }
  try {
    const results = await Promise.all(
      targets.map((target) => runTarget(target, report(target), input, over.signal)),
    )
    return results.flat()
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}

const OUT_OF_TIME: StepOutcome = {
  state: 'warning',
  id: 'live-unreachable',
  detail: 'was not tried: the time for all checks was over',
}

async function runTarget(
  target: Target,
  report: (verdict: StepOutcome, step: Step, latencyMs?: number) => LiveResult,
  { limitMs, monotonic }: RunInput,
  over: AbortSignal,
): Promise<LiveResult[]> {
  const { name, services, variables, order, steps } = target
  if (typeof steps === 'string') {
    return [{ target: name, check: 'configuration', state: 'skipped', detail: steps, services, variables }]
  }
  const run = async (step: Step): Promise<LiveResult> => {
    // Failed, not skipped: a check that there was no time for must not pass with --strict.
    if (over.aborted) return report(OUT_OF_TIME, step)
    const began = monotonic()
    const verdict = await underLimit(step, limitMs, over)
    return report(verdict, step, Math.round((monotonic() - began) * 10) / 10)
  }
  const results: LiveResult[] = []
  for (const [index, step] of steps.entries()) {
    const failed = results.find(({ state }) => state === 'failed')
    if (order === 'fan' && index === 1 && failed === undefined)
      return [...results, ...(await Promise.all(steps.slice(1).map(run)))]
    results.push(
      failed === undefined
        ? await run(step)
        : report({ state: 'skipped', detail: `not tried, as ${failed.check} failed` }, step),
    )
  }
  return results
}

/**
 * Runs a step within its limit. Raced against a timer, not only aborted, because name resolution ignores a
 * signal.
 */
async function underLimit(step: Step, limitMs: number, over: AbortSignal): Promise<StepOutcome> {
  const controller = new AbortController()
  const late: StepOutcome = { state: 'failed', id: 'live-unreachable', detail: 'gives no answer in time' }
  return new Promise((resolve) => {
    const stop = () => {
      finish(late)
      controller.abort()
    }
    const timer = setTimeout(stop, limitMs)
    over.addEventListener('abort', stop, { once: true })
    const finish = (verdict: StepOutcome) => {
      clearTimeout(timer)
      over.removeEventListener('abort', stop)
      resolve(verdict)
    }
    Promise.resolve()
      .then(() => step.run(controller.signal))
      .then(finish, (error: unknown) => finish(outcomeOfFault(error)))
  })
}
