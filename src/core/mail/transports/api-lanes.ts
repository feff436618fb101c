import type { Socket } from 'node:net'
import { buildConnector, Client } from 'undici'
import { bytesOf, type Piece, writePieces } from '../encoding.ts'
import { type Answer, type Exchange, exchange } from './api-exchange.ts'

export interface ApiLanes {
  /** One request with its body in pieces, on the next lane that is free. Rejects with undici's error. */
  exchange(
    request: Pick<Exchange, 'method' | 'path' | 'headers'>,
    body: readonly Piece[],
    signal?: AbortSignal,
  ): Promise<Answer>
  close(): Promise<void>
}

interface Lane {
  readonly client: Client
  /** Its connection, once there is one. */
  socket: Socket | undefined
  body: Buffer
}

const CONNECT_MS = 10_000
const NOT_SENT = 'UND_ERR_CLOSED'
const NONE = Buffer.alloc(0)

/**
 * Up to `size` connections, each with one request at a time and one buffer for bodies. A body is written there as its
 * request begins, so that the kernel finds it in the processor's cache; the next one may overwrite it when the kernel
 * has taken it whole. After a fault, or when a peer answers without reading, the lane gets another buffer.
 */
export function openLanes(
  origin: string,
  size: number,
  options: Omit<Client.Options, 'pipelining' | 'connect'>,
): ApiLanes {
  const all: Lane[] = []
  const free: Lane[] = []
  const waiting: (() => void)[] = []
  let closed = false

  function open(): Lane {
    // HTTP/2 would put several requests on one connection, whose body may then be sent piece by piece.
    const connect = buildConnector({ allowH2: false, timeout: CONNECT_MS })
    const lane: Lane = {
      socket: undefined,
      body: NONE,
      client: new Client(origin, {
        ...options,
        pipelining: 1,
        allowH2: false,
        connect: (target, callback) =>
          connect(target, (...[error, socket]) => {
            lane.socket = socket ?? undefined
            if (error === null) callback(error, socket)
            else callback(error, null)
          }),
      }),
    }
    all.push(lane)
    return lane
  }

  async function freeLane(signal: AbortSignal | undefined): Promise<Lane> {
    for (;;) {
      await new Promise<void>((resolve) => waiting.push(resolve))
      // Given up meanwhile: the lane that it was called for is the next one's.
      if (signal?.aborted) waiting.shift()?.()
      const lane = takeLane(signal)
      if (lane) return lane
    }
  }

  function takeLane(signal: AbortSignal | undefined): Lane | undefined {
    if (closed || signal?.aborted) throw Object.assign(new Error('not sent'), { code: NOT_SENT })
    return free.pop() ?? (all.length < size ? open() : undefined)
  }

  function bodyOn(lane: Lane, length: number): Buffer {
    if (lane.body.length < length || lane.socket?.writableLength !== 0)
      lane.body = Buffer.allocUnsafeSlow(Math.max(length + 4096, 20_480))
    return lane.body.subarray(0, length)
  }

  return {
    async exchange(request, pieces, signal) {
      const lane = takeLane(signal) ?? (await freeLane(signal))
      try {
        const body = bodyOn(lane, bytesOf(pieces))
        return await exchange(lane.client, {
          ...request,
          body,
          signal,
          onStart: () => void writePieces(pieces, body),
        })
      } catch (error) {
        // What was not answered may still be on its way out.
        lane.body = NONE
        throw error
      } finally {
        free.push(lane)
        waiting.shift()?.()
      }
    },
    async close() {
      if (closed) return
      closed = true
      for (const wake of waiting.splice(0)) wake()
      await Promise.all(all.map(({ client }) => client.close()))
    },
  }
}
