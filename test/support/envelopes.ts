import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { serve } from './servers.ts'

/** A request of an SDK: the headers of its envelope, and each item with its own header. */
export interface Recorded {
  readonly headers: Record<string, unknown>
  readonly items: readonly {
    readonly header: { readonly type: string }
    readonly payload: Record<string, unknown>
  }[]
}

/** A server that takes envelopes as the real one does, and keeps them. */
export async function recordEnvelopes(): Promise<{
  readonly dsn: string
  readonly origin: string
  readonly envelopes: Recorded[]
  /** Every byte that came in: bodies as text, and the request's own lines. */
  readonly raw: string[]
}> {
  const envelopes: Recorded[] = []
  const raw: string[] = []
  const origin = await serve(async (request, response) => {
    const bytes = await buffer(request)
    const body = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString()
    if (request.url?.includes('/envelope/')) {
      raw.push(`${request.url}\n${JSON.stringify(request.headers)}\n${body}`)
      envelopes.push(parse(body))
    }
    response
      .writeHead(200, { 'Access-Control-Allow-Origin': '*', 'Access-Control-Allow-Headers': '*' })
      .end('{}')
  })
  return { dsn: `${origin.replace('://', '://publickey@')}/1`, origin, envelopes, raw }
}

/** https://develop.sentry.dev/sdk/envelopes/: a line of headers, then a header and a payload a line each. */
function parse(body: string): Recorded {
  const lines = body.split('\n').filter((line) => line !== '')
  const [headers = {}, ...rest] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  const items = rest.flatMap((header, index) =>
    index % 2 === 0 ? [{ header: header as { type: string }, payload: rest[index + 1] ?? {} }] : [],
  )
  return { headers, items }
}
