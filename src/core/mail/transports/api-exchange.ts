import type { Client, Dispatcher } from 'undici'

export interface Exchange {
  readonly method: 'POST' | 'HEAD'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly signal?: AbortSignal | undefined
  /** The request is about to be written: the last moment to write its body. */
  readonly onStart: () => void
}

export interface Answer {
  readonly status: number
  readonly retryAfter: string | undefined
  /** The provider's own time: a date in `retryAfter` is later than this, whatever our clock says. */
  readonly date: string | undefined
  /** At most `LARGEST_ANSWER_BYTES` of it. */
  readonly text: string
}

const LARGEST_ANSWER_BYTES = 64 * 1024

/**
 * One request and its whole answer. Straight on undici's dispatcher: a stream and an abort listener for each answer of
 * a few bytes would cost as much as the request. Rejects with undici's error.
 */
export function exchange(
  client: Client,
  { method, path, headers, body, signal, onStart }: Exchange,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let status = 0
    let retryAfter: string | undefined
    let date: string | undefined
    let length = 0
    const chunks: Buffer[] = []
    let stop: (() => void) | undefined
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(controller) {
        onStart()
        if (signal === undefined) return
        stop ??= () => controller.abort(new Error('aborted'))
        if (signal.aborted) stop()
        else signal.addEventListener('abort', stop, { once: true })
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
        if (stop !== undefined) signal?.removeEventListener('abort', stop)
        const [only] = chunks
        resolve({
          status,
          retryAfter,
          date,
          text: (chunks.length === 1 && only ? only : Buffer.concat(chunks)).toString(),
        })
      },
      onResponseError(_, error) {
        if (stop !== undefined) signal?.removeEventListener('abort', stop)
        reject(error)
      },
    }
    client.dispatch({ method, path, headers, body }, handler)
  })
}
