import { connect, type Socket } from 'node:net'

export interface Target {
  readonly port: number
  readonly path: string
}

/**
 * Requests over raw keep-alive connections of HTTP/1.1: a client of the platform's own kind would be slower than what
 * it measures. Every answer must be 200.
 */
export async function openConnections(
  target: Target,
  connections: number,
): Promise<{ ask: () => Promise<void>; close: () => void }[]> {
  const request = Buffer.from(
    `GET ${target.path} HTTP/1.1\r\nHost: 127.0.0.1:${target.port}\r\nAccept: application/json\r\n\r\n`,
  )
  return Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = await opened(target.port)
      let answered: { resolve: () => void; reject: (error: Error) => void } | undefined
      let text = ''
      socket.on('data', (chunk: string) => {
        text += chunk
        const head = text.indexOf('\r\n\r\n')
        if (head === -1) return
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? Number.NaN)
        if (Number.isNaN(length))
          return answered?.reject(new Error(`an answer without a length: ${text.slice(0, head)}`))
        if (text.length < head + 4 + length) return
        const ok = text.startsWith('HTTP/1.1 200')
        const refused = text.slice(0, 40)
        text = ''
        if (ok) answered?.resolve()
        else answered?.reject(new Error(`answered ${refused}`))
      })
      socket.on('error', (error) => answered?.reject(error))
      socket.on('close', () => answered?.reject(new Error('the connection was closed')))
      return {
        ask: () =>
          new Promise<void>((resolve, reject) => {
            answered = { resolve, reject }
            if (socket.destroyed) reject(new Error('the connection was closed'))
            else socket.write(request)
          }),
        close: () => void socket.destroy(),
      }
    }),
  )
}

/** Requests a second while each of the connections asks again as soon as it is answered. */
export async function throughput(target: Target, connections: number, ms: number): Promise<number> {
  const lines = await openConnections(target, connections)
  const began = performance.now()
  let answered = 0
  await Promise.all(
    lines.map(async ({ ask }) => {
      while (performance.now() - began < ms) {
        await ask()
        answered += 1
      }
    }),
  )
  const seconds = (performance.now() - began) / 1000
  for (const { close } of lines) close()
  return answered / seconds
}

/**
 * Milliseconds within which 99 of 100 requests are answered when they come at a steady rate, whatever the server does:
 * each is timed from when it was due, so that a pause counts for all that had to wait for it.
 */
export async function p99AtRate(target: Target, rate: number, ms: number, connections = 64): Promise<number> {
  const lines = await openConnections(target, connections)
  const free = [...lines]
  const waiting: number[] = []
  const taken: number[] = []
  const began = performance.now()
  let due = 0
  let open = 0
  await new Promise<void>((resolve, reject) => {
    const serve = (): void => {
      for (;;) {
        const line = waiting.length > 0 ? free.pop() : undefined
        const at = line && waiting.shift()
        if (line === undefined || at === undefined) return
        open += 1
        line.ask().then(() => {
          taken.push(performance.now() - at)
          free.push(line)
          open -= 1
          serve()
        }, reject)
      }
    }
    const tick = (): void => {
      const now = performance.now()
      for (; due < ((now - began) * rate) / 1000 && now - began < ms; due += 1)
        waiting.push(began + (due * 1000) / rate)
      serve()
      if (now - began >= ms && waiting.length === 0 && open === 0) resolve()
      else setImmediate(tick)
    }
    tick()
  })
  for (const { close } of lines) close()
  taken.sort((a, b) => a - b)
  return taken[Math.ceil(taken.length * 0.99) - 1] ?? Number.NaN
}

function opened(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.setNoDelay(true).setEncoding('latin1')
    socket.once('error', reject)
  })
}
