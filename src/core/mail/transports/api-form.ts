import type { Secret } from '../../secret.ts'
import type { HttpFault } from '../outcome.ts'
import type { Message } from '../transport.ts'

export interface Exchange {
  readonly method: 'POST' | 'GET' | 'HEAD'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
  readonly signal?: AbortSignal | undefined
}

export interface ProviderResponse {
  readonly status: number
  readonly retryAfter: string | undefined
  /** The provider's own time: a date in `retryAfter` is later than this, whatever our clock says. */
  readonly date: string | undefined
  /** Amazon's name of an error. */
  readonly errorType: string | undefined
  /** The beginning of it. */
  readonly text: string
}

interface ApiRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** How one provider's API is spoken. */
export interface ApiForm {
  /** The transport's kind. */
  readonly kind: string
  /** Whether the provider delivers a message once, however often it comes with the same key. */
  readonly honorsKey: boolean
  /** The path for an address without one. */
  readonly path?: string
  open(
    key: Secret,
    url: URL,
    now: () => number,
  ): {
    request(message: Message, path: string): ApiRequest
    /** A request that shows whether the key is known, and sends nothing. */
    check(): Pick<Exchange, 'headers'> & { readonly method: 'GET' | 'HEAD'; readonly path?: string }
  }
  /** The field of an answer that holds the provider's id of the message. */
  readonly idIn: string
  /** The row of HTTP_OUTCOMES for a refusal whose status says less than its body. */
  readonly rowOf?: (
    answer: ProviderResponse,
    body: Readonly<Record<string, unknown>>,
  ) => HttpFault['row'] | undefined
  /** Whether a refused check came from a provider that knows the key. */
  readonly knowsKey?: (answer: ProviderResponse) => boolean
}
