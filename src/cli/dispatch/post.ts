import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'

/** A summary names up to 10,000 lessons. */
const LARGEST_ANSWER_BYTES = 16 * 1024 * 1024

/**
 * One POST, and its whole answer, after up to `patienceMs`; then rejects with a TimeoutError. Not on
 * `fetch`, which gives up by itself when no answer has begun after five minutes.
 */
export function post(input: {
  readonly url: URL
  readonly bearer: string
  readonly signal: AbortSignal
  readonly patienceMs: number
  /** Sent as JSON; no body when left out. */
  readonly body?: unknown
}): Promise<{ readonly status: number; readonly text: string }> {
  const { url, bearer, patienceMs } = input
  const body = input.body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(input.body))
  const patience = AbortSignal.timeout(patienceMs)
  const signal = AbortSignal.any([input.signal, patience])
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(patience.aborted ? patience.reason : error)
    const asked = (url.protocol === 'https:' ? overHttps : overHttp)(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${bearer}`,
        'content-length': body.length,
        ...(body.length > 0 && { 'content-type': 'application/json' }),
      },
      signal,
    })
    asked.on('error', fail)
    asked.on('response', (answer) => {
      const chunks: Buffer[] = []
      let length = 0
      answer.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length > LARGEST_ANSWER_BYTES) asked.destroy(new Error('the answer is too large'))
        chunks.push(chunk)
      })
      answer.on('error', fail)
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
      )
    })
    asked.end(body)
  })
}
