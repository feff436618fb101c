import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort } from '../test/support/free-port.ts'

/** A Redis on loopback with the append-only file that queues on it are told to use; needs `redis-server`. */
export async function startRedis(): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-redis-'))
  const port = await freePort()
  const server = spawn(
    'redis-server',
    [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
      ...[
        '--appendonly',
        'yes',
        '--appendfsync',
        'everysec',
        '--save',
        '',
        '--maxmemory-policy',
        'noeviction',
      ],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.stdout.on('data', (chunk: Buffer) => {
      if (/ready to accept connections/i.test(chunk.toString())) resolve()
    })
  })
  return {
    port,
    async stop() {
      const ended = new Promise((resolve) => server.once('close', resolve))
      server.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}
