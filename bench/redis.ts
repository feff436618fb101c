import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort } from '../test/support/free-port.ts'
import { first, owned, stopped } from './child.ts'

/** A Redis on loopback with the append-only file that queues on it are told to use; needs `redis-server`. */
export async function startRedis(): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-redis-'))
  const port = await freePort()
  const server = owned(
    spawn(
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
    ),
  )
  const ready = new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new Error('this benchmark needs redis-server: install Redis (Debian: apt-get install redis-server)', {
          cause: error,
        }),
      ),
    )
    server.stdout.on('data', (chunk: Buffer) => {
      if (/ready to accept connections/i.test(chunk.toString())) resolve()
    })
  })
  try {
    await first(server, ready)
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
  return {
    port,
    async stop() {
      await stopped(server)
      await rm(folder, { recursive: true, force: true })
    },
  }
}
