import { connect, type Socket } from 'node:net'

export interface RawResponse {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

export type Outcome =
  | { readonly kind: 'answer'; readonly answer: RawResponse }
  | { readonly kind: 'closed' | 'silent' }

/** One kept connection that sends raw bytes and reads one answer; opened anew when the other side has closed it. */
export function connection(port: number): {
  send(
    bytes: Buffer,
    options: { readonly head: boolean; readonly keep: boolean; readonly patienceMs: number },
  ): Promise<Outcome>
  close(): void
} {
  let socket: Socket | undefined
  return {
    send: (bytes, { head, keep, patienceMs }) =>
      new Promise((resolve) => {
        const kept = socket?.writable && !socket.destroyed ? socket : undefined
        let current = kept ?? connect(port, '127.0.0.1')
        let retried = kept === undefined
        let received: Buffer = Buffer.alloc(0)
        const finish = (outcome: Outcome, keepOpen: boolean) => {
          clearTimeout(timer)
          current.removeAllListeners('data').removeAllListeners('close')
          if (!keepOpen) current.destroy()
          resolve(outcome)
        }
        // Half-sent requests are ended by us: the other side has its own, longer patience.
        const timer = setTimeout(() => finish({ kind: 'silent' }, false), patienceMs)
        const begin = () => {
          socket = current
          current.setNoDelay(true)
          current.removeAllListeners('error').on('error', () => {})
          current.on('data', (chunk: Buffer) => {
            received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
            const parsed = parse(received, head)
            if (parsed === undefined) return
            const closes = parsed.answer.headers.get('connection') === 'close' || parsed.rest > 0
            finish({ kind: 'answer', answer: parsed.answer }, keep && !closes)
          })
          current.on('close', () => {
            if (retried || received.length > 0) return finish({ kind: 'closed' }, false)
            // A kept connection may have been ended while this request was on its way (RFC 9112 §9.3.1).
            retried = true
            current = connect(port, '127.0.0.1')
            begin()
          })
          current.write(bytes)
        }
        begin()
      }),
    close: () => socket?.destroy(),
  }
}

/** The first whole answer in these bytes, interim ones left out; undefined while it is not whole. */
function parse(bytes: Buffer, head: boolean): { answer: RawResponse; rest: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(`${statusLine} `)?.[1])
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    }),
  )
  const start = end + 4
  if (status >= 100 && status < 200) return parse(bytes.subarray(start), head)
  const bodyless = head || status === 204 || status === 304
  if (bodyless) return { answer: { status, headers, body: '' }, rest: bytes.length - start }
  if (headers.get('transfer-encoding') === 'chunked') return parseChunked(bytes, start, status, headers)
  const length = Number(headers.get('content-length') ?? 0)
  if (bytes.length < start + length) return undefined
  const body = bytes.subarray(start, start + length).toString('utf8')
  return { answer: { status, headers, body }, rest: bytes.length - start - length }
}

function parseChunked(
  bytes: Buffer,
  start: number,
  status: number,
  headers: ReadonlyMap<string, string>,
): { answer: RawResponse; rest: number } | undefined {
  let at = start
  let body = ''
  for (;;) {
    const eol = bytes.indexOf('\r\n', at)
    if (eol < 0) return undefined
    const size = Number.parseInt(bytes.subarray(at, eol).toString('latin1'), 16)
    const next = eol + 2 + size + 2
    if (bytes.length < next) return undefined
    if (size === 0) return { answer: { status, headers, body }, rest: bytes.length - next }
    body += bytes.subarray(eol + 2, eol + 2 + size).toString('utf8')
    at = next
  }
}
