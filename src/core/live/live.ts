import type { Clock } from '../clock.ts'
import type { LiveFindingId } from '../env/explanations.ts'
import { given } from '../given.ts'
import type { CauseCode } from '../network/causes.ts'
import type { Service } from '../service.ts'

/**
 * The names of the targets: groups, services, and `sender` for the domain that mail comes from. The first
 * service is left out, because it is the one that asks the others.
 */
export function liveTargetNames(services: readonly Service[]): readonly string[] {
  return [
    ...['datastore', 'payments', 'sharedstore', 'mail', 'sender', ...services.slice(1), 'store', 'site'],
    ...['alerts', 'alert-mail', 'escalation', 'heartbeat'],
  ]
}

export const LIVE_CHECKS = [
  'configuration',
  'name resolution',
  'domain',
  'reachability',
  'certificate',
  'health',
  'authorisation',
  'service role',
  'published keys',
  'SPF',
  'DKIM',
  'DMARC',
  'migrations',
  'test message',
] as const
export type LiveCheck = (typeof LIVE_CHECKS)[number]

/** `skipped` was not tried, and says why: it is never counted or shown as passed. */
export const LIVE_STATES = ['passed', 'warning', 'failed', 'skipped'] as const
export type LiveState = (typeof LIVE_STATES)[number]

/** The result of one live check. `detail` is a predicate ("does not resolve") and holds no value, host or address. */
export type StepOutcome =
  | { readonly state: 'passed' | 'skipped'; readonly detail: string }
  | { readonly state: 'warning' | 'failed'; readonly id: LiveFindingId; readonly detail: string }

export const passed = (detail: string): StepOutcome => ({ state: 'passed', detail })
export const skipped = (detail: string): StepOutcome => ({ state: 'skipped', detail })
export const warning = (id: LiveFindingId, detail: string): StepOutcome => ({ state: 'warning', id, detail })
export const failed = (id: LiveFindingId, detail: string): StepOutcome => ({ state: 'failed', id, detail })

export type LiveResult = StepOutcome & {
  readonly target: string
  readonly check: LiveCheck
  readonly services: readonly Service[]
  readonly variables: readonly string[]
  /** The step's place. It may name a host, so it is left out of every report. */
  readonly place?: string
  /** Milliseconds; absent when nothing was tried. */
  readonly latencyMs?: number
}

export interface Step {
  readonly check: LiveCheck
  /** Names what the step looks at, never shown: faults of the same place become one finding. */
  readonly place?: string
  readonly variables: readonly string[]
  /** Rejects with a NetworkFault when the other side cannot be asked. */
  readonly run: (signal: AbortSignal) => Promise<StepOutcome>
}

/**
 * One integration. In a `chain`, a step is tried only if those before it did not fail, so that one cause
 * gives one message. A `fan` runs the first step, then the others side by side.
 */
export interface Target {
  readonly name: string
  readonly services: readonly Service[]
  readonly variables: readonly string[]
  readonly order: 'chain' | 'fan'
  /** The steps, or the end of a sentence that says why there is nothing to check. */
  readonly steps: readonly Step[] | string
}

/** Why the other side could not be asked. */
export type FaultKind =
  | 'no such name'
  | 'name server'
  | 'refused'
  | 'no route'
  | 'timeout'
  | 'tls'
  | 'no tls'
  | 'broken'
  | 'unreadable'

export class NetworkFault extends Error {
  override readonly name = 'NetworkFault'
  readonly kind: FaultKind

  constructor(kind: FaultKind) {
    super(kind)
    this.kind = kind
  }
}

const KINDS: Readonly<Partial<Record<CauseCode, FaultKind>>> = {
  dns_not_found: 'no such name',
  dns_unavailable: 'name server',
  dns_timeout: 'name server',
  connect_refused: 'refused',
  connect_unreachable: 'no route',
  proxy_refused: 'refused',
  tls_failed: 'broken',
  bad_http: 'unreadable',
  headers_too_large: 'unreadable',
  encoded: 'unreadable',
  too_large: 'unreadable',
}

/** The network fault for the cause of a failed request. */
export function faultOf(cause: CauseCode): NetworkFault {
  const kind =
    KINDS[cause] ?? (cause.endsWith('_timeout') ? 'timeout' : cause.startsWith('tls_') ? 'tls' : 'broken')
  return new NetworkFault(kind)
}

const OUTCOMES: Readonly<Record<FaultKind, StepOutcome>> = {
  'no such name': failed('live-name', 'does not resolve'),
  'name server': failed('live-name-server', 'cannot be looked up: no name server answers'),
  refused: failed('live-unreachable', 'cannot be reached: the connection is refused'),
  'no route': failed('live-unreachable', 'cannot be reached: no route leads there'),
  timeout: failed('live-unreachable', 'gives no answer in time'),
  tls: failed('live-certificate', 'cannot be trusted: the certificate is not valid'),
  'no tls': warning('live-plain-text', 'is absent: the server offers no encryption'),
  unreadable: failed('live-unhealthy', 'gives an answer that cannot be read'),
  broken: failed('live-unreachable', 'cannot be reached: the connection breaks'),
}

/** The outcome of a step that threw; the text of any error but a network fault could quote a value. */
export function outcomeOfFault(error: unknown): StepOutcome {
  return error instanceof NetworkFault
    ? OUTCOMES[error.kind]
    : failed('live-unreachable', 'could not be checked')
}

interface RunOptions {
  /** The most that one check may take, and the most that all of them may. */
  readonly limitMs: number
  readonly deadlineMs: number
  /** Aborted by the user. Checks in progress are then given up. */
  readonly signal: AbortSignal
  /** Called after each check with how many are done, how many there are, and the targets still at work. */
  readonly onProgress?: (done: number, all: number, waiting: readonly string[]) => void
}

/** Runs every target at once, each check under its own limit, all under one deadline. Never rejects. */
export async function runLive(
  { monotonic }: Pick<Clock, 'monotonic'>,
  targets: readonly Target[],
  { limitMs, deadlineMs, signal, onProgress }: RunOptions,
): Promise<readonly LiveResult[]> {
  const over = new AbortController()
  const end = () => over.abort()
  const timer = setTimeout(end, deadlineMs)
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  const all = targets.flatMap(({ name, steps }) => (typeof steps === 'string' ? [] : steps.map(() => name)))
  const left = [...all]
  const run = async ({ name, services }: Target, step: Step, untried?: StepOutcome): Promise<LiveResult> => {
    const began = monotonic()
    // A warning, not skipped: a check that there was no time for must not pass with --strict.
    const instead = untried ?? (over.signal.aborted ? OUT_OF_TIME : undefined)
    const outcome = instead ?? (await underLimit(step, limitMs, over.signal))
    const latencyMs = instead ? undefined : Math.round((monotonic() - began) * 10) / 10
    left.splice(left.indexOf(name), 1)
    onProgress?.(all.length - left.length, all.length, [...new Set(left)])
    const { check, variables, place } = step
    return { target: name, check, ...outcome, services, variables, ...given({ place, latencyMs }) }
  }
  try {
    return (await Promise.all(targets.map((target) => runTarget(target, run)))).flat()
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}

const OUT_OF_TIME = warning('live-unreachable', 'was not tried: the time for all checks was over')

async function runTarget(
  target: Target,
  run: (target: Target, step: Step, untried?: StepOutcome) => Promise<LiveResult>,
): Promise<LiveResult[]> {
  const { name, services, variables, order, steps } = target
  if (typeof steps === 'string')
    return [{ target: name, check: 'configuration', ...skipped(steps), services, variables }]
  const results: LiveResult[] = []
  for (const [index, step] of steps.entries()) {
    const culprit = results.find(({ state }) => state === 'failed')
    if (order === 'fan' && index === 1 && culprit === undefined)
      return [...results, ...(await Promise.all(steps.slice(1).map((one) => run(target, one))))]
    results.push(await run(target, step, culprit && skipped(`not tried, as ${culprit.check} failed`)))
  }
  return results
}

/** Runs a step within its limit. Raced against a timer, not only aborted, because name resolution ignores a signal. */
async function underLimit(step: Step, limitMs: number, over: AbortSignal): Promise<StepOutcome> {
  const controller = new AbortController()
  const { promise: late, resolve } = Promise.withResolvers<StepOutcome>()
  const stop = () => {
    resolve(OUTCOMES.timeout)
    controller.abort()
  }
  const timer = setTimeout(stop, limitMs)
  over.addEventListener('abort', stop, { once: true })
  const running = Promise.resolve(controller.signal).then(step.run).catch(outcomeOfFault)
  return Promise.race([running, late]).finally(() => {
    clearTimeout(timer)
    over.removeEventListener('abort', stop)
  })
}
