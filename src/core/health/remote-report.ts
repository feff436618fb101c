import { isRecord } from '../is-record.ts'
import type { CauseCode } from '../network/causes.ts'
import type { Service } from '../service.ts'
import type { HealthReport, ProbeResult } from './probe.ts'

/** Larger than any report of ours by far. */
export const LARGEST_REPORT_BYTES = 256 * 1024
const MOST_PROBES = 100
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

/** The cause if the status alone decides it; undefined if the body does. */
export function causeOfStatus(status: number): CauseCode | undefined {
  return status >= 300 && status < 400 ? 'redirect' : BY_STATUS[status]
}

/** Whether an answer with this status should hold a report. */
export function holdsReport(status: number): boolean {
  return causeOfStatus(status) === undefined
}

/**
 * Reads another server's answer as the health of `service`: by the JSON state, never by a word in the text.
 * What it says may be shown on a terminal, so control characters are gone and texts are cut.
 */
export function readReport(
  { status, body }: { readonly status: number; readonly body: string },
  service: Service,
): { readonly report: HealthReport } | { readonly cause: CauseCode } {
  const known = causeOfStatus(status)
  if (known) return { cause: known }
  const broken = (cause: CauseCode) => ({ cause: status >= 500 ? 'server_error' : cause })
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return broken('bad_json')
  }
  const report = reportOf(value)
  if (report === undefined) return broken('not_health')
  return report.service === service ? { report } : { cause: 'wrong_service' }
}

function reportOf(value: unknown): HealthReport | undefined {
  if (!isRecord(value) || !isRecord(value.probes)) return undefined
  const { state } = value
  const service = text(value.service)
  if (service === undefined || (state !== 'ok' && state !== 'degraded' && state !== 'failing'))
    return undefined
  const names = Object.keys(value.probes)
  if (names.length > MOST_PROBES) return undefined
  const probes: Record<string, ProbeResult> = {}
  for (const name of names) {
    const result = probeOf(value.probes[name])
    if (result === undefined || !PROBE_NAME.test(name)) return undefined
    probes[name] = result
  }
  return {
    service,
    state,
    build: text(value.build) ?? null,
    startedAt: text(value.startedAt) ?? '',
    time: text(value.time) ?? '',
    latencyMs: milliseconds(value.latencyMs) ?? 0,
    probes,
  }
}

function probeOf(value: unknown): ProbeResult | undefined {
  if (!isRecord(value)) return undefined
  const { state } = value
  if (state !== 'ok' && state !== 'degraded' && state !== 'failing' && state !== 'skipped') return undefined
  const [reason, latencyMs] = [text(value.reason), milliseconds(value.latencyMs)]
  return {
    state,
    checked: value.checked === true,
    ...(reason === undefined ? {} : { reason }),
    ...(latencyMs === undefined ? {} : { latencyMs }),
  }
}

/** Control characters would steer the terminal; the bidirectional controls would reorder the line. */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}]/gu

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== ''
    ? value.slice(0, LONGEST_TEXT).toWellFormed().replace(CONTROLS, '')
    : undefined
}

function milliseconds(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value < 1e9 ? value : undefined
}
