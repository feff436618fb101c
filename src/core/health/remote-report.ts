import { given } from '../given.ts'
import { isRecord, jsonObject, parsedJson } from '../is-record.ts'
import type { CauseCode } from '../network/causes.ts'
import type { HealthFormat, Service } from '../service.ts'
import type { HealthReport, ProbeResult } from './probe.ts'

/** Room for a thousand probes that all say why they fail. */
export const LARGEST_REPORT_BYTES = 512 * 1024
const MOST_PROBES = 1000
const LONGEST_TEXT = 300
const PROBE_NAME = /^[a-z][a-z0-9_-]{0,63}$/

const BY_STATUS: Readonly<Record<number, CauseCode>> = {
  401: 'unauthorised',
  403: 'forbidden',
  404: 'not_found',
  405: 'not_found',
  410: 'not_found',
  429: 'rate_limited',
}

type Read = { readonly report: HealthReport; readonly foreign?: true } | { readonly cause: CauseCode }

/** The cause, if the status alone decides it. */
export function causeOfStatus(status: number): CauseCode | undefined {
  return status >= 300 && status < 400 ? 'redirect' : BY_STATUS[status]
}

/** Another server's health, by state and status alone. Its texts are cut, and lose what would steer a terminal. */
export function readReport({ status, body }: Answer, service: Service): Read {
  const known = causeOfStatus(status)
  if (known) return { cause: known }
  const value = parsedJson(body)
  const report = reportOf(value)
  if (report === undefined)
    return { cause: status >= 500 ? 'server_error' : value === undefined ? 'bad_json' : 'not_health' }
  return report.service === service
    ? { report: { ...report, state: seen(status, report.state) } }
    : { cause: 'wrong_service' }
}

/** If a load balancer takes the answer for a failure, it is one, whatever its text says. */
const seen = (status: number, state: State): State => (status >= 400 ? 'failing' : state)

function reportOf(value: unknown): HealthReport | undefined {
  if (!isRecord(value) || !isRecord(value.probes)) return undefined
  const state = WORST_FIRST.find((one) => one === value.state)
  const service = text(value.service)
  const probes = new Map(Object.entries(value.probes).map(([name, probe]) => [name, probeOf(name, probe)]))
  if (service === undefined || state === undefined || probes.size > MOST_PROBES) return undefined
  if (![...probes.values()].every((probe) => probe !== undefined)) return undefined
  return {
    service,
    state,
    build: text(value.build) ?? null,
    startedAt: text(value.startedAt) ?? '',
    time: text(value.time) ?? '',
    latencyMs: milliseconds(value.latencyMs) ?? 0,
    probes: Object.fromEntries(probes) as HealthReport['probes'],
  }
}

function probeOf(name: string, value: unknown): ProbeResult | undefined {
  if (!isRecord(value) || !PROBE_NAME.test(name)) return undefined
  const state = ([...WORST_FIRST, 'skipped'] as const).find((one) => one === value.state)
  const said = given({ reason: text(value.reason), latencyMs: milliseconds(value.latencyMs) })
  return state && { state, checked: value.checked === true, ...said }
}

/** Control characters would steer the terminal; the bidirectional controls would reorder the line. */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}]/gu

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== ''
    ? value.slice(0, LONGEST_TEXT).toWellFormed().replace(CONTROLS, '')
    : undefined
}

const milliseconds = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value < 1e9 ? value : undefined

type ForeignFormat = Exclude<HealthFormat, 'platformctl'>
type State = HealthReport['state']
type Words = Readonly<Record<string, State>>

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

/** A reader for each format. It gives undefined for an answer that is not in its format; the HTTP status is judged after it. */
const READERS: Readonly<Record<ForeignFormat, (answer: Answer) => Reading | undefined>> = {
  status: () => ({ state: 'ok' }),
  'health+json': ({ body }) => {
    const value = jsonObject(body)
    const state = wordOf(value.status, HEALTH_JSON)
    if (state === undefined) return undefined
    const parts = partsOf(value.checks, (check) => {
      // Each key has a list: one entry for each node of a component.
      const all = (Array.isArray(check) ? check : [check]).filter(isRecord)
      const states = all.map((one) => wordOf(one.status, HEALTH_JSON) ?? 'ok')
      const worst = WORST_FIRST.find((one) => states.includes(one)) ?? 'ok'
      return result(worst, all[states.indexOf(worst)]?.output)
    })
    return { state, parts, build: text(value.releaseId) ?? text(value.version) }
  },
  spring: ({ body }) => {
    const value = jsonObject(body)
    if (typeof value.status !== 'string') return undefined
    const state = wordOf(value.status, SPRING) ?? 'degraded'
    return { state, parts: partsOf(value.components ?? value.details, (part) => named(part, SPRING)) }
  },
  aspnet: ({ body }) => {
    const plain = wordOf(body.trim(), ASPNET)
    if (plain !== undefined) return { state: plain }
    const value = jsonObject(body)
    const state = wordOf(value.status, ASPNET)
    return state && { state, parts: partsOf(value.entries ?? value.results, (part) => named(part, ASPNET)) }
  },
}

/** The plain texts of healthy programs that use no format. */
const PLAIN_OK = /^"?(?:ok|okay|up|alive|healthy|pass|pong|success)"?[.!]?$/i

/** The first format that fits the answer of an unknown program. An HTML page is not a health answer, whatever its status. */
function readAny({ status, body }: Answer): Reading | undefined {
  const word = body.trim()
  if (word === '' || PLAIN_OK.test(word)) return { state: 'ok' }
  const value = jsonObject(body)
  const { service } = value
  const ours = typeof service === 'string' ? readReport({ status, body }, service) : undefined
  if (ours !== undefined && 'report' in ours) {
    const { state, build, probes } = ours.report
    return { state, parts: Object.entries(probes), build: build ?? undefined }
  }
  const read = (format: ForeignFormat) => READERS[format]({ status, body })
  // health+json knows Spring's words too, but Spring keeps its parts elsewhere.
  if ('components' in value || 'details' in value) return read('spring')
  return read('health+json') ?? read('aspnet') ?? read('spring')
}

const WORST_FIRST: readonly State[] = ['failing', 'degraded', 'ok']
/** draft-inadarei-api-health-check-06, section 3.1, with the words it allows for other conventions. */
// biome-ignore format: a list of names is read as a text
const HEALTH_JSON: Words = {
  pass: 'ok', ok: 'ok', up: 'ok', warn: 'degraded', fail: 'failing', error: 'failing', down: 'failing',
}
const SPRING: Words = { up: 'ok', unknown: 'degraded', down: 'failing', out_of_service: 'failing' }
const ASPNET: Words = { healthy: 'ok', degraded: 'degraded', unhealthy: 'failing' }

/** Reads an answer as the health of `service`, in its format. `any` tells the format from the answer. */
export function readHealth(answer: Answer, service: Service, format: HealthFormat | 'any'): Read {
  if (format === 'platformctl') return readReport(answer, service)
  const cause = causeOfStatus(answer.status)
  if (cause !== undefined) return { cause }
  const reading = (format === 'any' ? readAny : READERS[format])(answer)
  if (reading === undefined) return { cause: answer.status >= 500 ? 'server_error' : 'not_health' }
  const { state, parts = [], build = null } = reading
  const untold = { startedAt: '', time: '', latencyMs: 0 }
  const probes = Object.fromEntries(parts)
  return { foreign: true, report: { service, state: seen(answer.status, state), build, ...untold, probes } }
}

function partsOf(value: unknown, read: (part: unknown) => ProbeResult | undefined) {
  const entries = isRecord(value) ? Object.entries(value).slice(0, MOST_PROBES) : []
  return entries.flatMap(([name, part]) => {
    const clean = probeName(name)
    const found = read(part)
    return found === undefined || clean === '' ? [] : [[clean, found] as const]
  })
}

function named(part: unknown, words: Words): ProbeResult | undefined {
  const { status, description } = isRecord(part) ? part : {}
  const state = wordOf(status, words)
  return state && result(state, description)
}

function result(state: State, output: unknown): ProbeResult {
  return { state, checked: true, ...given({ reason: state === 'ok' ? undefined : text(output) }) }
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

function wordOf(value: unknown, words: Words): State | undefined {
  const word = typeof value === 'string' ? value.toLowerCase() : ''
  return Object.hasOwn(words, word) ? words[word] : undefined
}
