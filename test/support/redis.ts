import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import path from 'node:path'
import { onTestFinished } from 'vitest'
import { emptyFolder } from './folder.ts'
import type { Command } from './rest-store.ts'

/** A Redis of its own on a Unix socket, in memory, as the REST gateway's backend. */
export async function redis(): Promise<Command> {
  const socketPath = path.join(await emptyFolder(), 'redis.sock')
  const server = spawn(
    'redis-server',
    ['--port', '0', '--unixsocket', socketPath, '--save', '', '--appendonly', 'no'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const ended = new Promise<void>((resolve) => server.once('close', () => resolve()))
  onTestFinished(() => {
    server.kill('SIGTERM')
    return ended
  })
  await new Promise<void>((resolve) =>
    server.stdout.on('data', (chunk) => {
      if (/ready to accept connections/i.test(String(chunk))) resolve()
    }),
  )
  const socket = connect(socketPath)
  onTestFinished(() => void socket.destroy())
  const waiting: ((answer: Awaited<ReturnType<Command>>) => void)[] = []
  let buffered = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    buffered += chunk
    for (let read = reply(buffered, 0); read; read = reply(buffered, 0)) {
      buffered = buffered.slice(read.end)
      waiting.shift()?.(read.error === undefined ? { result: read.value } : { error: read.error })
    }
  })
  return (words) =>
    new Promise((resolve) => {
      waiting.push(resolve)
      const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`)
      socket.write(`*${words.length}\r\n${parts.join('')}`)
    })
}

interface Reply {
  readonly value?: unknown
  readonly error?: string
  readonly end: number
}

/** One reply of RESP 2 at an offset, or undefined while it is not whole yet. */
function reply(text: string, from: number): Reply | undefined {
  const eol = text.indexOf('\r\n', from)
  if (eol < 0) return undefined
  const rest = text.slice(from + 1, eol)
  const end = eol + 2
  switch (text[from]) {
    case '+':
      return { value: rest, end }
    case '-':
      return { error: rest, end }
    case ':':
      return { value: Number(rest), end }
    case '$': {
      const size = Number(rest)
      if (size < 0) return { value: null, end }
      return text.length < end + size + 2
        ? undefined
        : { value: text.slice(end, end + size), end: end + size + 2 }
    }
    default: {
      const values: unknown[] = []
      let at = end
      for (let left = Number(rest); left > 0; left -= 1) {
        const item = reply(text, at)
        if (item === undefined) return undefined
        values.push(item.value)
        at = item.end
      }
      return { value: values, end: at }
    }
  }
}
