import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { owned, stopped } from './child.ts'

const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))

export interface RunningServer {
  readonly port: number
  readonly child: ChildProcess
  stop(): Promise<void>
}

/** The daemon as it is run in production, its web service only; its log in a file. */
export async function daemonServer(
  env: Readonly<Record<string, string>> = {},
  ...more: readonly string[]
): Promise<RunningServer> {
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-daemon-'))
  const args = [
    bin,
    'daemon',
    '--data',
    folder,
    '--service',
    'web',
    '--web-port',
    '0',
    '--grace',
    '0',
    '--no-schedule',
    ...more,
  ]
  const { child, stop, first } = await started(
    args,
    env,
    /"event":"listening".*"web":"http:\/\/127\.0\.0\.1:(\d+)"/,
  )
  return {
    port: first,
    child,
    async stop() {
      await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A peer that prints its port: a file of bench/peers. */
export async function peerServer(file: string): Promise<RunningServer> {
  const { child, stop, first } = await started(
    [fileURLToPath(new URL(`peers/${file}`, import.meta.url))],
    {},
    /^(\d+)$/m,
  )
  return { port: first, child, stop }
}

/** Standard output goes to a file: through a pipe the load's own process would have to read it, and hold it up. */
async function started(args: readonly string[], env: Readonly<Record<string, string>>, port: RegExp) {
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-server-'))
  const file = path.join(folder, 'stdout')
  const stdout = await open(file, 'w')
  const child = owned(
    spawn(process.execPath, args, {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: ['ignore', stdout.fd, 'inherit'],
    }),
  )
  const stop = async () => {
    await stopped(child, 'SIGKILL')
    await stdout.close()
    await rm(folder, { recursive: true, force: true })
  }
  for (;;) {
    const text = await readFile(file, 'utf8')
    const found = port.exec(text)?.[1]
    if (found !== undefined) return { child, stop, first: Number(found) }
    if (child.exitCode !== null) {
      await stop()
      throw new Error(`${args.join(' ')} ended: ${text.slice(0, 500)}`)
    }
    await sleep(1)
  }
}

/** Answers a second over kept connections, one request at a time on each; every answer must be a 200. */
export function requestsASecond({
  port,
  target,
  connections,
  seconds,
}: {
  readonly port: number
  readonly target: string
  readonly connections: number
  readonly seconds: number
}): Promise<number> {
  const request = `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: application/json\r\n\r\n`
  return new Promise((resolve, reject) => {
    let answers = 0
    const began = performance.now()
    const sockets = Array.from({ length: connections }, () => {
      const socket = connect(port, '127.0.0.1', () => socket.write(request))
      let left = 0
      socket.on('data', (chunk: Buffer) => {
        if (left === 0) {
          const head = chunk.toString('latin1', 0, Math.min(chunk.length, 2048))
          const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1]
          if (!head.startsWith('HTTP/1.1 200') || length === undefined)
            return reject(new Error(`an answer that is none: ${head.slice(0, 200)}`))
          left = head.indexOf('\r\n\r\n') + 4 + Number(length)
        }
        left -= chunk.length
        if (left > 0) return
        left = 0
        answers += 1
        socket.write(request)
      })
      socket.on('error', reject)
      return socket
    })
    setTimeout(() => {
      const perSecond = (answers * 1000) / (performance.now() - began)
      for (const socket of sockets) {
        socket.removeAllListeners('error').on('error', () => {})
        socket.destroy()
      }
      resolve(perSecond)
    }, seconds * 1000)
  })
}
