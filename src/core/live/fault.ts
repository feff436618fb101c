import type { CauseCode } from '../network/causes.ts'
import type { StepOutcome } from './live.ts'

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
  'no such name': { state: 'failed', id: 'live-name', detail: 'does not resolve' },
  'name server': {
    state: 'failed',
    id: 'live-name-server',
    detail: 'cannot be looked up: no name server answers',
  },
  refused: {
    state: 'failed',
    id: 'live-unreachable',
    detail: 'cannot be reached: the connection is refused',
  },
  'no route': { state: 'failed', id: 'live-unreachable', detail: 'cannot be reached: no route leads there' },
  timeout: { state: 'failed', id: 'live-unreachable', detail: 'gives no answer in time' },
  tls: { state: 'failed', id: 'live-certificate', detail: 'cannot be trusted: the certificate is not valid' },
  'no tls': { state: 'warning', id: 'live-plain-text', detail: 'is absent: the server offers no encryption' },
  unreadable: { state: 'failed', id: 'live-unhealthy', detail: 'gives an answer that cannot be read' },
  broken: { state: 'failed', id: 'live-unreachable', detail: 'cannot be reached: the connection breaks' },
}

/**
 * The outcome of a step that threw. Only a network fault is described: the text of any other error could
 * quote a value.
 */
export function outcomeOfFault(error: unknown): StepOutcome {
  return error instanceof NetworkFault
    ? OUTCOMES[error.kind]
    : { state: 'failed', id: 'live-unreachable', detail: 'could not be checked' }
}
