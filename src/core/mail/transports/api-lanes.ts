import { Client } from 'undici'
import { bytesOf, type Piece, writePieces } from '../encoding.ts'
import { type Answer, type Exchange, exchange } from './api-exchange.ts'

export interface ApiLanes {
  /** One request with its body in pieces, on the next lane that is free. Rejects with undici's error. */
  exchange(request: Omit<Exchange, 'body'>, body: readonly Piece[], signal?: AbortSignal): Promise<Answer>
  close(): Promise<void>
}

interface Lane {
  readonly client: Client
  bodies: [Buffer, Buffer]
  turn: 0 | 1
}

const NONE = Buffer.alloc(0)

/**
 * Up to `size` connections, each with one request at a time and two buffers for bodies in turn: memory that was just
 * used is written five times as fast as fresh memory. A buffer is written again only when the request after its own
 * was answered on the same lane. Without pipelining the server has by then read the earlier body to its end (RFC 9112
 * §9.3), whatever it answered how early; and after any fault the lane gets new buffers.
 */
export function openLanes(
  origin: string,
  size: number,
  options: Omit<Client.Options, 'pipelining'>,
): ApiLanes {
  const all: Lane[] = []
  const free: Lane[] = []
  const waiting: (() => void)[] = []
  let closed = false

  async function take(signal: AbortSignal | undefined): Promise<Lane> {
    for (;;) {
      if (closed || signal?.aborted) throw Object.assign(new Error('not sent'), { code: 'UND_ERR_CLOSED' })
      const lane = free.pop()
      if (lane) return lane
      if (all.length < size) {
        // HTTP/2 would put several requests on one connection, and the order of what is above would not hold.
        const client = new Client(origin, { ...options, pipelining: 1, allowH2: false })
        const opened: Lane = { client, bodies: [NONE, NONE], turn: 0 }
        all.push(opened)
        return opened
      }
      await new Promise<void>((resolve) => waiting.push(resolve))
    }
  }

  return {
    async exchange(request, pieces, signal) {
      const lane = await take(signal)
      try {
        const answer = await exchange(lane.client, { ...request, body: bodyOn(lane, pieces) }, signal)
        lane.turn = lane.turn === 0 ? 1 : 0
        return answer
      } catch (error) {
        // What was not answered may still be on its way out.
        lane.bodies = [NONE, NONE]
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

function bodyOn(lane: Lane, pieces: readonly Piece[]): Buffer {
  const length = bytesOf(pieces)
  if (lane.bodies[lane.turn].length < length)
    lane.bodies[lane.turn] = Buffer.allocUnsafeSlow(Math.max(length + 4096, 32_768))
  return writePieces(pieces, lane.bodies[lane.turn])
}
