import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './free-port.ts'

/** A PgBouncer in transaction mode before a server on loopback: no connection of it belongs to a client for longer than that. */
export async function startPgBouncer(
  server: number,
): Promise<{ readonly port: number; readonly stop: () => Promise<void> }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-pgbouncer-'))
  // It does not run as root either.
  await chmod(folder, 0o755)
  const port = await freePort()
  await writeFile(path.join(folder, 'users.txt'), '"postgres" "only-for-tests"\n')
  await writeFile(
    path.join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=127.0.0.1 port=${server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${path.join(folder, 'users.txt')}
pool_mode = transaction
max_client_conn = 500
default_pool_size = 4
server_idle_timeout = 1
`,
  )
  const user = process.getuid?.() === 0 ? ['-u', 'postgres'] : []
  const bouncer = spawn('pgbouncer', ['-q', ...user, path.join(folder, 'pgbouncer.ini')], {
    stdio: 'ignore',
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
  })
  for (let tries = 0; !(await answers(port)); tries += 1) {
    if (tries > 100 || bouncer.exitCode !== null) throw new Error('PgBouncer did not start')
    await sleep(50)
  }
  return {
    port,
    async stop() {
      const ended = once(bouncer, 'exit')
      bouncer.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
