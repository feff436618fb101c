import type { IncomingMessage, RequestOptions } from 'node:http'
import type { Service } from '../service.ts'
import type { HealthReport } from './probe.ts'

/** Why a service could not be asked: each has its own code, so that a script can tell them apart. */
export type ProbeFault =
  | 'dns'
  | 'refused'
  | 'timeout'
  | 'tls'
  | 'network'
  | 'unauthorised'
  | 'redirect'
  | 'too_large'
  | 'not_health'

export type RemoteHealth =
  | {
      readonly service: Service
      readonly url: string
      readonly reached: true
      readonly latencyMs: number
      readonly report: HealthReport
    }
  | {
      readonly service: Service
      readonly url: string
      readonly reached: false
      readonly latencyMs: number
      readonly fault: ProbeFault
      readonly reason: string
    }

const PATHS: Readonly<Record<Service, string>> = {
  web: '/api/health',
  api: '/api/health',
  agent: '/api/agent/health',
}
const LARGEST_BODY_BYTES = 256 * 1024

const REASONS: Readonly<Record<ProbeFault, string>> = {
  dns: 'its name does not resolve',
  refused: 'the connection was refused: nothing listens there',
  timeout: 'no answer in time',
  tls: 'its certificate could not be verified',
  network: 'the connection broke',
  unauthorised:
    'it wants the token for deep checks (HEALTH_DEEP_TOKEN, or name another variable with --token-env)',
  redirect: 'it redirects elsewhere; name the address it redirects to',
  too_large: 'its answer is too large to be a health report',
  not_health: 'it answers, but not with a health report',
}

export interface ProbeInput {
  readonly service: Service
  readonly url: string
  readonly deep: boolean
  /** Sent as Authorization to this very origin only; a redirect is never followed. */
  readonly token: string | undefined
  readonly timeoutMs: number
  readonly monotonic: () => number
}

/** Asks one service for its health, by `node:http` alone. Never rejects. */
export async function probeRemote({
  service,
  url,
  deep,
  token,
  timeoutMs,
  monotonic,
}: ProbeInput): Promise<RemoteHealth> {
  const began = monotonic()
  const target = new URL(
    url.replace(/\/+$/, '') + PATHS[service] + (deep && service === 'web' ? '?deep=1' : ''),
  )
  const took = () => Math.round((monotonic() - began) * 10) / 10
  const failed = (fault: ProbeFault): RemoteHealth => ({
    service,
    url,
    reached: false,
    latencyMs: took(),
    fault,
    reason: REASONS[fault],
  })
  try {
    const { status, body } = await get(target, token, timeoutMs)
    if (status === 401) return failed('unauthorised')
    if (status >= 300 && status < 400) return failed('redirect')
    const report = parseReport(body, service)
    return report ? { service, url, reached: true, latencyMs: took(), report } : failed('not_health')
  } catch (error) {
    return failed(faultOf(error))
  }
}

async function get(
  target: URL,
  token: string | undefined,
  timeoutMs: number,
): Promise<{ status: number; body: string }> {
  const { request } = target.protocol === 'https:' ? await import('node:https') : await import('node:http')
  const options: RequestOptions = {
    headers: {
      accept: 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    agent: false,
  }
  return new Promise((resolve, reject) => {
    const asked = request(target, options, (answer: IncomingMessage) => {
      let body = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        body += chunk
        if (body.length > LARGEST_BODY_BYTES)
          end(Object.assign(new Error('too large'), { code: 'TOO_LARGE' }))
      })
      answer.on('error', end)
      answer.on('end', () => {
        clearTimeout(timer)
        resolve({ status: answer.statusCode ?? 0, body })
      })
    })
    // An outer timer: a name resolution that hangs listens to no signal.
    const timer = setTimeout(() => end(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })), timeoutMs)
    function end(error: Error): void {
      clearTimeout(timer)
      reject(error)
      asked.destroy()
    }
    asked.on('error', end)
    asked.end()
  })
}

function faultOf(error: unknown): ProbeFault {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns'
  if (code === 'ECONNREFUSED') return 'refused'
  if (code === 'ETIMEDOUT') return 'timeout'
  if (code === 'TOO_LARGE') return 'too_large'
  if (/CERT|TLS|SSL|UNABLE_TO|SELF_SIGNED|ALTNAME|EPROTO/.test(code)) return 'tls'
  return code.startsWith('HPE_') ? 'not_health' : 'network'
}

/** The JSON state, never a word in the text. */
function parseReport(body: string, service: Service): HealthReport | undefined {
  try {
    const value = JSON.parse(body) as Partial<HealthReport> | null
    const known = value?.state === 'ok' || value?.state === 'degraded' || value?.state === 'failing'
    return known && value.service === service && typeof value.probes === 'object' && value.probes !== null
      ? (value as HealthReport)
      : undefined
  } catch {
    return undefined
  }
}
