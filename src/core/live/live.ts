import { LIVE_FINDINGS, type LiveFindingId } from '../env/explanations.ts'
import type { Origin } from '../env/validate.ts'
import { codeOf } from '../errors.ts'
import type { Finding } from '../finding.ts'
import { given } from '../given.ts'
import { type Clock, untilAborted, within } from '../host.ts'
import { isCauseCode } from '../network/causes.ts'
import type { Service } from '../service.ts'

/** Each check with what comes before its variables as the subject of a finding; the step's detail is the predicate. */
const SUBJECTS = {
  configuration: '',
  'name resolution': 'The host of ',
  domain: 'The domain of ',
  reachability: '',
  certificate: 'The certificate behind ',
  health: 'The service behind ',
  authorisation: '',
  'service role': '',
  'published keys': '',
  SPF: 'The domain of ',
  DKIM: 'The domain of ',
  DMARC: 'The domain of ',
  migrations: 'The store of ',
  webhook: 'The webhook behind ',
  'test message': 'The receiver of ',
}
export type LiveCheck = keyof typeof SUBJECTS
export const LIVE_CHECKS = Object.keys(SUBJECTS) as readonly LiveCheck[]

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

export type LiveResult = StepOutcome &
  Pick<Step, 'check' | 'variables' | 'place'> & {
    readonly target: string
    readonly services: readonly Service[]
    /** Milliseconds; absent when nothing was tried. */
    readonly latencyMs?: number
  }

export interface Step {
  readonly check: LiveCheck
  /** Names what the step looks at, perhaps a host, so never shown: faults of the same place become one finding. */
  readonly place?: string
  readonly variables: readonly string[]
  /** It goes through a proxy of the environment. */
  readonly isProxied?: boolean
  /** Rejects with the code of a cause when the other side cannot be asked. */
  readonly run: (signal: AbortSignal) => Promise<StepOutcome>
}

/** One integration. A `chain` stops at a step that fails; a `fan` runs the first step, then the others at once. */
export interface Target {
  readonly name: string
  readonly services: readonly Service[]
  readonly variables: readonly string[]
  readonly order: 'chain' | 'fan'
  /** The steps, or the end of a sentence that says why there is nothing to check. */
  readonly steps: readonly Step[] | string
}

/** The code of a fault beside those of causes: the mail server offers no encryption. */
export const NO_STARTTLS = 'no_starttls'

const LATE = failed('live-unreachable', 'gives no answer in time')
const SILENT = failed('live-name-server', 'cannot be looked up: no name server answers')
const ASKING_NAME_SERVERS: readonly LiveCheck[] = ['name resolution', 'domain', 'SPF', 'DKIM', 'DMARC']

/** What becomes of a step by the code of its fault: the first that fits counts. */
const OUTCOMES: readonly (readonly [codes: RegExp, outcome: StepOutcome])[] = [
  [/^dns_not_found$/, failed('live-name', 'does not resolve')],
  [/^dns_/, SILENT],
  [/_refused$/, failed('live-unreachable', 'cannot be reached: the connection is refused')],
  [/^connect_unreachable$/, failed('live-unreachable', 'cannot be reached: no route leads there')],
  [/_timeout$/, LATE],
  [/^no_starttls$/, warning('live-plain-text', 'is absent: the server offers no encryption')],
  [/^tls_(?!failed)/, failed('live-certificate', 'cannot be trusted: the certificate is not valid')],
  [/^bad_http$|too_large$|^encoded$/, failed('live-unhealthy', 'gives an answer that cannot be read')],
]
const BROKEN = failed('live-unreachable', 'cannot be reached: the connection breaks')

/** The outcome of a step that threw: by the code of a cause, as the text of the error could quote a value. */
export function outcomeOfFault(error: unknown): StepOutcome {
  const code = codeOf(error)
  return isCauseCode(code) || code === NO_STARTTLS
    ? (OUTCOMES.find(([codes]) => codes.test(code))?.[1] ?? BROKEN)
    : failed('live-unreachable', 'could not be checked')
}

/** Runs every target at once, each check under its own limit, all under one deadline. Never rejects. */
export async function runLive(
  { monotonic }: Pick<Clock, 'monotonic'>,
  targets: readonly Target[],
  options: {
    /** The most that one check may take, and the most that all of them may. */
    readonly limitMs: number
    readonly deadlineMs: number
    /** Aborted by the user. Checks in progress are then given up. */
    readonly signal: AbortSignal
    /** Called after each check with how many are done, how many there are, and the targets still at work. */
    readonly onProgress?: (done: number, all: number, waiting: readonly string[]) => void
  },
): Promise<readonly LiveResult[]> {
  const { limitMs, deadlineMs, signal, onProgress } = options
  const over = AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)])
  const all = targets.flatMap(({ name, steps }) => (typeof steps === 'string' ? [] : steps.map(() => name)))
  const left = [...all]
  const run = async ({ name, services }: Target, step: Step, untried?: StepOutcome): Promise<LiveResult> => {
    const began = monotonic()
    // A warning, not skipped: a check that there was no time for must not pass with --strict.
    const instead = untried ?? (over.aborted ? OUT_OF_TIME : undefined)
    const outcome = instead ?? (await underLimit(step, limitMs, over))
    const latencyMs = instead ? undefined : Math.round((monotonic() - began) * 10) / 10
    left.splice(left.indexOf(name), 1)
    onProgress?.(all.length - left.length, all.length, [...new Set(left)])
    const { check, variables, place } = step
    return { target: name, check, ...outcome, services, variables, ...given({ place, latencyMs }) }
  }
  const runTarget = async (target: Target): Promise<LiveResult[]> => {
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
  return (await Promise.all(targets.map(runTarget))).flat()
}

const OUT_OF_TIME = warning('live-unreachable', 'was not tried: the time for all checks was over')

/** Runs a step within its limit. Raced against a timer, not only aborted, because name resolution ignores a signal. */
async function underLimit(step: Step, limitMs: number, over: AbortSignal): Promise<StepOutcome> {
  const ended = new AbortController()
  const signal = AbortSignal.any([over, ended.signal])
  const running = Promise.resolve(signal).then(step.run).catch(outcomeOfFault)
  const late = ASKING_NAME_SERVERS.includes(step.check) ? SILENT : LATE
  const outcome = Promise.race([running, untilAborted(signal).then(() => late)])
  const found = await within(limitMs, outcome, () => late).finally(() => ended.abort())
  if (!step.isProxied || found.state !== 'failed') return found
  return { ...found, detail: `${found.detail}, through the proxy` }
}

/** An error for each failed check, a warning for each doubtful one. The same fault at the same place is one finding. */
export function liveFindings(results: readonly LiveResult[], origin: Origin): Finding[] {
  const faults = results.filter((result) => 'id' in result)
  return [...Map.groupBy(faults, causeOf).values()].flatMap((same) => {
    const [first] = same
    if (first === undefined) return []
    const { target, check, id, detail } = first
    const variables = [...new Set(same.flatMap((one) => one.variables))]
    const where = variables.map(origin).find((place) => place !== undefined)
    const names = [...new Set(same.map(subjectOf))].join(', ')
    // No variable names a store that lies in the data folder.
    const subject = `${SUBJECTS[check]}${names}`.replace(/ of $/, '')
    return [
      {
        id,
        severity: same.some(({ state }) => state === 'failed') ? 'error' : 'warning',
        services: [...new Set(same.flatMap(({ services }) => services))],
        group: target,
        present: variables,
        missing: [],
        cause: `${subject.charAt(0).toUpperCase()}${subject.slice(1)} ${detail}.`,
        fix: LIVE_FINDINGS[id].fix,
        ...where,
      } satisfies Finding,
    ]
  })
}

/** A silent name server is one fault whatever was looked up; any other fault belongs to its place. */
function causeOf(result: LiveResult & { readonly id: LiveFindingId }): unknown {
  if (result.id === 'live-name-server') return result.id
  return result.place === undefined ? result : `${result.state} ${result.id} ${result.place} ${result.detail}`
}

/** What a finding is about. No variable names the provider's own address of payments, nor one in the definition. */
function subjectOf({ target, check, variables }: LiveResult): string {
  if (check === 'reachability' && variables.length === 0) return `the probe ${target}`
  return target === 'payments' && check !== 'authorisation' && variables[0] === 'PAYMENTS_SECRET_KEY'
    ? 'the payments provider'
    : variables.join(', ')
}
