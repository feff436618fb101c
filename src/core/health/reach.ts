import { parsedJson } from '../is-record.ts'
import { CAUSES } from '../network/causes.ts'
import { get, type Network } from '../network/get.ts'
import type { Service, ServiceDefinition } from '../service.ts'
import { degraded, failing, ok, type ProbeContext, type ProbeResult } from './probe.ts'
import { probeRemote } from './prober.ts'

/** What an answer must be; without it, any that is no server's error will do. */
export interface ExpectedAnswer {
  /** A text that the body contains, within its first 64 KB. */
  readonly contains?: string
  /** Values in a body of JSON, by path: `{ status: 'up', 'checks.0.ok': true }`. */
  readonly json?: Readonly<Record<string, string | number | boolean | null>>
}

interface ReachOptions {
  readonly url: string
  readonly expect?: ExpectedAnswer | undefined
  readonly clock: { readonly now: () => number; readonly monotonic: () => number }
  readonly network?: Network | undefined
  /** Called with the build that a service reports; null is unstamped. */
  readonly noteBuild?: (service: Service, build: string | null) => void
}

/** Another server writes this text, so it is cut before it is kept. */
const LONGEST_BUILD = 100
const LARGEST_BODY_BYTES = 64 * 1024

/** Checks that a server answers, not with an error of its own, and as expected. Reads no more than that needs. */
export async function reachable(options: ReachOptions, { signal }: ProbeContext): Promise<ProbeResult> {
  const outcome = await get({
    url: new URL(options.url),
    signal,
    largestBytes: LARGEST_BODY_BYTES,
    isCut: options.expect?.json === undefined,
    wantsBody: (status) => options.expect !== undefined && status < 500,
    monotonic: options.clock.monotonic,
    network: options.network,
  })
  if (!outcome.answered) return failing(`cannot be reached: ${CAUSES[outcome.cause].meaning}`)
  if (outcome.status >= 500) return failing('answers with an error of its own')
  const otherwise = unexpected(outcome.body, options.expect)
  return otherwise === undefined ? ok(true) : failing(otherwise)
}

/** How a body differs from what is expected, without a word of it: it is another server's text. */
function unexpected(body: string, { contains, json }: ExpectedAnswer = {}): string | undefined {
  if (contains !== undefined && !body.includes(contains)) return 'answers without the text that is expected'
  if (json === undefined) return undefined
  const whole = parsedJson(body)
  if (whole === undefined) return 'answers with something other than JSON'
  const path = Object.keys(json).find((one) => valueAt(whole, one) !== json[one])
  return path && `answers with another ${path} than is expected`
}

function valueAt(whole: unknown, path: string): unknown {
  let value = whole
  for (const key of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[key]
  }
  return value
}

/** Another service of the platform, asked for its shallow health: reachable and not failing. */
export async function serviceState(
  target: Pick<ServiceDefinition, 'name' | 'health' | 'format'>,
  options: ReachOptions,
  { signal }: ProbeContext,
): Promise<ProbeResult> {
  const { name: service } = target
  const health = await probeRemote({ ...options, ...target, service, signal })
  if (!health.reached) return failing(`no health to be had: ${health.reason}`)
  const { state, build } = health.report
  if (!health.foreign)
    options.noteBuild?.(service, typeof build === 'string' ? build.slice(0, LONGEST_BUILD) : null)
  if (state === 'ok') return ok(true)
  return state === 'failing' ? failing('is failing') : degraded('is degraded', true)
}
