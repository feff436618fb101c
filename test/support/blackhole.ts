import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'

const LISTENER = `const server = require('node:net').createServer(() => {})
server.listen({ port: Number(process.argv[1]), host: process.argv[2], backlog: 1 }, () => console.log(server.address().port))`

/**
 * A port that never accepts: its process is stopped and its backlog is full, so that the kernel drops what comes. It
 * is what a firewall that drops packets looks like, without one.
 */
export async function blackhole(host: string, port = 0): Promise<number> {
  const child = spawn(process.execPath, ['-e', LISTENER, String(port), host], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const waiting: Socket[] = []
  onTestFinished(() => {
    for (const socket of waiting) socket.destroy()
    child.kill('SIGKILL')
  })
  const taken = Number(String(await firstLine(child)))
  child.kill('SIGSTOP')
  for (;;) {
    const socket = connect({ host, port: taken })
    socket.on('error', () => {})
    waiting.push(socket)
    const connected = await Promise.race([once(socket, 'connect').then(() => true), sleep(150, false)])
    if (!connected) return taken
  }
}

async function firstLine(child: ChildProcess): Promise<unknown> {
  const [line] = await once(child.stdout ?? child, 'data')
  return line
}
