import { isRecord } from '../is-record.ts'
import type { CauseCode } from '../network/causes.ts'
import type { HealthFormat, Service } from '../service.ts'
import type { HealthReport, ProbeResult } from './probe.ts'
import { causeOfStatus, readReport, text } from './remote-report.ts'

export type ForeignFormat = Exclude<HealthFormat, 'platformctl'>
type State = HealthReport['state']

/** State reported by another program, and the states of its parts if it names them. */
interface Reading {
  readonly state: State
  readonly parts?: readonly (readonly [name: string, result: ProbeResult])[]
  readonly build?: string | undefined
}

interface Answer {
  readonly status: number
  readonly body: string
}

const MOST_PARTS = 100

type Reader = (answer: Answer) => Reading | undefined

/** A reader for each format. It gives undefined for an answer that is not in its format. */
const READERS: Readonly<Record<ForeignFormat, Reader>> = {
  status: ({ status }) => ({ state: status < 400 ? 'ok' : 'failing' }),
  'health+json': ({ body }) => {
    const value = parse(body)
    const state = wordOf(value?.status, HEALTH_JSON)
    if (value === undefined || state === undefined) return undefined
    const parts = partsOf(value.checks, (check) => {
      // Each key has a list: one entry for each node of a component.
      const all = (Array.isArray(check) ? check : [check]).filter(isRecord)
      const states = all.map((one) => wordOf(one.status, HEALTH_JSON) ?? 'ok')
      const worst = WORST_FIRST.find((one) => states.includes(one)) ?? 'ok'
      return result(worst, all[states.indexOf(worst)]?.output)
    })
    return { state, parts, build: text(value.releaseId) ?? text(value.version) }
  },
  spring: ({ status, body }) => {
    const value = parse(body)
    if (value === undefined || typeof value.status !== 'string') return undefined
    // A status that Spring does not define is judged by the HTTP status.
    const state = wordOf(value.status, SPRING) ?? (status < 400 ? 'degraded' : 'failing')
    return { state, parts: partsOf(value.components ?? value.details, (part) => named(part, SPRING)) }
  },
  aspnet: ({ body }) => {
    const plain = wordOf(body.trim(), ASPNET)
    if (plain !== undefined) return { state: plain }
    const value = parse(body)
    const state = wordOf(value?.status, ASPNET)
    return (
      value &&
      state && { state, parts: partsOf(value.entries ?? value.results, (part) => named(part, ASPNET)) }
    )
  },
}

/** The plain texts of healthy programs that use no format. */
const PLAIN_OK = /^"?(?:ok|okay|up|alive|healthy|pass|pong|success)"?[.!]?$/i

/** The first format that fits the answer of an unknown program. An HTML page is not a health answer, whatever its status. */
function readAny({ status, body }: Answer): Reading | undefined {
  const word = body.trim()
  // An empty or plain answer is judged by its HTTP status.
  if (word === '' || PLAIN_OK.test(word)) return { state: status < 400 ? 'ok' : 'failing' }
  const service = parse(body)?.service
  const ours = typeof service === 'string' ? readReport({ status, body }, service) : undefined
  if (ours !== undefined && 'report' in ours) {
    const { state, build, probes } = ours.report
    return { state, parts: Object.entries(probes), build: build ?? undefined }
  }
  const value = parse(body)
  const read = (format: ForeignFormat) => READERS[format]({ status, body })
  // health+json knows Spring's words too, but Spring keeps its parts elsewhere.
  if (value !== undefined && ('components' in value || 'details' in value)) return read('spring')
  return read('health+json') ?? read('aspnet') ?? read('spring')
}

const WORST_FIRST: readonly State[] = ['failing', 'degraded', 'ok']
/** draft-inadarei-api-health-check-06, section 3.1, with the words it allows for other conventions. */
const HEALTH_JSON: Readonly<Record<string, State>> = {
  pass: 'ok',
  ok: 'ok',
  up: 'ok',
  warn: 'degraded',
  fail: 'failing',
  error: 'failing',
  down: 'failing',
}
const SPRING: Readonly<Record<string, State>> = {
  up: 'ok',
  unknown: 'degraded',
  down: 'failing',
  out_of_service: 'failing',
}
const ASPNET: Readonly<Record<string, State>> = { healthy: 'ok', degraded: 'degraded', unhealthy: 'failing' }

/** Reads another program's answer as health. What it says may be shown on a terminal, so texts are cut and cleaned. */
export function readForeign(
  answer: Answer,
  service: Service,
  format: ForeignFormat | 'any',
): { readonly report: HealthReport; readonly foreign: true } | { readonly cause: CauseCode } {
  const cause = causeOfStatus(answer.status)
  if (cause !== undefined) return { cause }
  const reading = (format === 'any' ? readAny : READERS[format])(answer)
  if (reading === undefined) return { cause: answer.status >= 500 ? 'server_error' : 'not_health' }
  const { state, parts = [], build = null } = reading
  return {
    foreign: true,
    report: {
      service,
      // If a load balancer takes the answer for a failure, it is one, whatever its text says.
      state: answer.status >= 400 ? 'failing' : state,
      build,
      startedAt: '',
      time: '',
      latencyMs: 0,
      probes: Object.fromEntries(parts),
    },
  }
}

function partsOf(
  value: unknown,
  read: (part: unknown) => ProbeResult | undefined,
): NonNullable<Reading['parts']> {
  if (!isRecord(value)) return []
  return Object.entries(value)
    .slice(0, MOST_PARTS)
    .flatMap(([name, part]) => {
      const found = read(part)
      const clean = probeName(name)
      return found === undefined || clean === '' ? [] : [[clean, found] as const]
    })
}

function named(part: unknown, words: Readonly<Record<string, State>>): ProbeResult | undefined {
  if (!isRecord(part)) return undefined
  const state = wordOf(part.status, words)
  return state && result(state, part.description)
}

function result(state: State, output: unknown): ProbeResult {
  const reason = state === 'ok' ? undefined : text(output)
  return { state, checked: true, ...(reason !== undefined && { reason }) }
}

/** The name of a probe from that of a part: `diskSpace` and `disk-space` become `disk_space`. */
function probeName(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+|_$/g, '')
    .slice(0, 64)
}

function wordOf(value: unknown, words: Readonly<Record<string, State>>): State | undefined {
  const word = typeof value === 'string' ? value.toLowerCase() : ''
  return Object.hasOwn(words, word) ? words[word] : undefined
}

function parse(body: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
