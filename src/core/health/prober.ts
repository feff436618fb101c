import { DAY_MS } from '../durations.ts'
import { given } from '../given.ts'
import { CAUSES, type CauseCode } from '../network/causes.ts'
import { type GetInput, get, type Phases } from '../network/get.ts'
import { type HealthFormat, type Service, WEB } from '../service.ts'
import { addressUnder } from '../trim-end.ts'
import type { HealthReport } from './probe.ts'
import { causeOfStatus, LARGEST_REPORT_BYTES, readHealth } from './remote-report.ts'

export type RemoteHealth = Pick<RemoteProbeInput, 'service' | 'url'> & {
  readonly phases: Phases
  /** Only over https, and only where the certificate holds. */
  readonly certificate?: { readonly validTo: string; readonly daysLeft: number }
} & (
    | {
        readonly reached: true
        readonly report: HealthReport
        /** Another program answered, in a format of its own: it has no build of the platform. */
        readonly foreign?: true
      }
    | { readonly reached: false; readonly cause: CauseCode; readonly reason: string; readonly fix: string }
  )

const ACCEPT: Readonly<Record<HealthFormat | 'any', string>> = {
  platformctl: 'application/json',
  'health+json': 'application/health+json, application/json;q=0.9',
  spring: 'application/json',
  aspnet: 'application/json, text/plain',
  status: '*/*',
  any: 'application/json, application/health+json;q=0.9, */*;q=0.8',
}

export interface RemoteProbeInput extends Pick<GetInput, 'timeoutMs' | 'signal' | 'network'> {
  readonly service: Service
  /** The service's root; the path of its health is added. */
  readonly url: string
  readonly health: string
  /** How the answer is read; that of platformctl when left out. `any` tells the format from the answer. */
  readonly format?: HealthFormat | 'any' | undefined
  /** Live checks of what web depends on; the other services have one kind of health. */
  readonly deep?: boolean
  /** Sent as Authorization with a deep request, to this very origin only; a redirect is never followed. */
  readonly token?: string | undefined
  readonly clock: { readonly now: () => number; readonly monotonic: () => number }
}

/** Asks one service for its health. Never rejects, and is over in `timeoutMs` whatever hangs. */
export async function probeRemote(input: RemoteProbeInput): Promise<RemoteHealth> {
  const { service, url, clock, token, format = 'platformctl', timeoutMs, signal, network } = input
  const deep = input.deep && service === WEB
  const authorization = deep && token !== undefined && { authorization: `Bearer ${token}` }
  const outcome = await get({
    url: addressUnder(url, input.health, deep ? '?deep=1' : ''),
    headers: { accept: ACCEPT[format], ...authorization },
    network,
    ...given({ timeoutMs, signal }),
    largestBytes: LARGEST_REPORT_BYTES,
    wantsBody: (status) => format !== 'status' && causeOfStatus(status) === undefined,
    monotonic: clock.monotonic,
  })
  const read = outcome.answered ? readHealth(outcome, service, format) : outcome
  const end = outcome.answered ? outcome.certificateEnd : undefined
  const certificate = end !== undefined && {
    validTo: new Date(end).toISOString(),
    daysLeft: Math.floor((end - clock.now()) / DAY_MS),
  }
  const common = { service, url, phases: outcome.phases, ...(certificate && { certificate }) }
  if ('report' in read)
    return { ...common, reached: true, report: read.report, ...('foreign' in read && { foreign: true }) }
  const cause = deep && read.cause === 'unauthorised' && token === undefined ? 'token_missing' : read.cause
  const { meaning, fix } = CAUSES[cause]
  return { ...common, reached: false, cause, reason: meaning, fix }
}
