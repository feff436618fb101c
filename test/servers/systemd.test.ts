import { spawn } from 'node:child_process'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { hasProgram } from '../support/programs.ts'

const here =
  hasProgram(['systemd-notify', '--version'], 'systemd') && hasProgram(['python3', '--version'], 'python3')

/** Python, because Node has no datagram sockets of this kind. */
const LISTENER = `
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(listener.recv(4096).decode(), flush=True)
`

/** The manager's end of NOTIFY_SOCKET: what arrived, word for word. */
async function notifySocket(): Promise<{ file: string; heard: () => string[] }> {
  const file = path.join(await emptyFolder(), 'notify')
  let text = ''
  const listener = spawn('python3', ['-c', LISTENER, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void listener.kill())
  await new Promise<void>((resolve) =>
    listener.stdout.on('data', (chunk) => {
      text += chunk
      resolve()
    }),
  )
  return { file, heard: () => text.split('\n') }
}

test.skipIf(!here)(
  'systemd hears when the daemon is ready, that it is alive, and that it stops',
  async () => {
    const { file, heard } = await notifySocket()
    const folder = await emptyFolder()
    const daemon = await startDaemon(['--data', folder, '--no-schedule'], {
      cwd: folder,
      env: { NOTIFY_SOCKET: file, WATCHDOG_USEC: '200000' },
    })
    onTestFinished(async () => void (await daemon.stop('SIGKILL')))
    await expect.poll(heard, { timeout: 5000 }).toContain('READY=1')
    expect(heard()).toContain(`STATUS=${daemon.urls.web}, ${daemon.urls.api}, ${daemon.urls.agent}`)
    await expect
      .poll(() => heard().filter((word) => word === 'WATCHDOG=1').length, { timeout: 5000 })
      .toBeGreaterThan(2)
    expect(await daemon.stop()).toBe(0)
    await expect.poll(heard, { timeout: 5000 }).toContain('STOPPING=1')
    expect(heard().indexOf('READY=1')).toBeLessThan(heard().indexOf('WATCHDOG=1'))
  },
)

test('a daemon that cannot reach systemd logs it once and serves', async () => {
  const folder = await emptyFolder()
  const daemon = await startDaemon(['--data', folder, '--no-schedule'], {
    cwd: folder,
    env: { NOTIFY_SOCKET: path.join(folder, 'nobody-listens'), WATCHDOG_USEC: '50000' },
  })
  onTestFinished(async () => void (await daemon.stop('SIGKILL')))
  const warnings = () => daemon.lines.filter(({ event }) => event === 'systemd_not_notified')
  await expect.poll(() => warnings().length, { timeout: 5000 }).toBe(1)
  expect((await fetch(`${daemon.urls.web}/api/health`)).status).toBe(200)
  expect(await daemon.stop()).toBe(0)
  expect(warnings()).toHaveLength(1)
})
