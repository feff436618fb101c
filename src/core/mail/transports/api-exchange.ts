import type { Dispatcher } from 'undici'

export interface Exchange {
  readonly method: 'POST' | 'HEAD'
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
  /** At most `LARGEST_ANSWER_BYTES` of it. */
  readonly text: string
}

const LARGEST_ANSWER_BYTES = 64 * 1024

/** Given up before any of it was sent: as undici says it of a pool that is closed. */
const notSent = () => Object.assign(new Error('not sent'), { code: 'UND_ERR_CLOSED' })

/**
 * One request and its whole answer. Straight on undici's dispatcher: a stream and an abort listener for each answer of
 * a few bytes would cost as much as the request. Rejects with undici's error.
 */
export function exchange(pool: Dispatcher, { signal, ...request }: Exchange): Promise<ProviderResponse> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(notSent())
    let status = 0
    let retryAfter: string | undefined
    let date: string | undefined
    let length = 0
    const chunks: Buffer[] = []
    let stop: (() => void) | undefined
    const ended = () => stop && signal?.removeEventListener('abort', stop)
    pool.dispatch(request, {
      onRequestStart(controller) {
        if (signal?.aborted) return controller.abort(notSent())
        stop = () => controller.abort(new Error('aborted'))
        signal?.addEventListener('abort', stop, { once: true })
      },
      onResponseStart(_, statusCode, fields) {
        status = statusCode
        const text = (value: string | string[] | undefined) => (typeof value === 'string' ? value : undefined)
        retryAfter = text(fields['retry-after'])
        date = text(fields.date)
      },
      onResponseData(_, chunk) {
        if (length < LARGEST_ANSWER_BYTES) chunks.push(chunk)
        length += chunk.length
      },
      onResponseEnd() {
        ended()
        resolve({ status, retryAfter, date, text: Buffer.concat(chunks).toString() })
      },
      onResponseError(_, error) {
        ended()
        reject(error)
      },
    })
  })
}
