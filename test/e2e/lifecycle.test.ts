import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import path from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { bare, bin, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { command } from '../support/in-process.ts'

async function daemon(args: string[] = [], env: Record<string, string> = {}) {
  const folder = await emptyFolder()
  const running = await startDaemon(['--data', folder, '--no-schedule', ...args], { cwd: folder, env })
  onTestFinished(async () => void (await running.stop('SIGKILL')))
  return running
}

/** A connection of our own, so that a request can stay half-sent. */
function raw(url: string): { socket: Socket; received: () => string; ended: Promise<void> } {
  let text = ''
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()).on('error', () => {}))
  return { socket, received: () => text, ended }
}

const HALF_A_SUBSCRIPTION =
  'POST /api/email/subscribe HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n{"email":"a@ex'

test.each(['STORE_URL', 'JOB_STORE_URL'])(
  'with a misspelt %s nothing starts, no other store is opened, and the accepted forms are named',
  async (name) => {
    const cwd = await emptyFolder()
    const env = { [name]: 'postgress://ada:canary@db.example.com/platform' }
    const { exitCode, stdout, stderr } = await command(['daemon', '--data', cwd], { cwd, env })
    expect(exitCode).toBe(2)
    expect(stderr).toContain(`platformctl: ${name} is not the address of a store`)
    expect(stderr).toMatch(/sqlite:PATH or postgres:\/\/USER:PASSWORD@HOST:PORT\/DATABASE/)
    expect(stdout + stderr).not.toContain('canary')
    // No store, but a note for `status` of why nothing runs.
    expect(readdirSync(cwd)).toEqual(['daemon.json'])
    const { refused } = JSON.parse(readFileSync(path.join(cwd, 'daemon.json'), 'utf8'))
    expect(refused).toContain(name)
    expect(refused).not.toContain('canary')
  },
)

test('the demo takes its folder away when its terminal is closed', async () => {
  const [cwd, TMPDIR] = [await emptyFolder(), await emptyFolder()]
  const demo = execa('node', [bin, 'demo', '--day', '0.1'], {
    cwd,
    env: bare({ TMPDIR }, cwd),
    extendEnv: false,
    reject: false,
  })
  onTestFinished(() => void demo.kill('SIGKILL'))
  await expect.poll(() => readdirSync(TMPDIR).length, { timeout: 20_000 }).toBe(1)
  demo.kill('SIGHUP')
  expect(await demo).toMatchObject({ exitCode: 0, stdout: '' })
  expect((await demo).stderr).toMatch(/stopped; nothing left behind$/)
  expect(readdirSync(TMPDIR)).toEqual([])
})

test.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)('after SIGTERM it fails its health while it keeps serving, until %s', async (second, code) => {
  const it = await daemon(['--grace', '30'])
  void it.stop()
  const stopping = () => it.lines.some(({ event }) => event === 'stopping')
  await expect.poll(stopping, { timeout: 5000 }).toBe(true)
  const health = await fetch(`${it.urls.web}/api/health`)
  expect(health.status).toBe(503)
  expect(health.headers.get('connection')).toBe('close')
  expect(((await health.json()) as { probes: object }).probes).toMatchObject({
    lifecycle: { state: 'failing', reason: 'the daemon stops' },
  })
  expect((await fetch(`${it.urls.web}/lessons/1`)).status).toBe(200)
  // A second signal means it: nobody waits for the rest of the grace.
  expect(await it.stop(second)).toBe(code)
})

test('under systemd it tells where it listens and that it stops; Ctrl-C ends it without the grace', async () => {
  const folder = await emptyFolder()
  const said = path.join(folder, 'said')
  const script = `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> '${said}'\n`
  writeFileSync(path.join(folder, 'systemd-notify'), script, { mode: 0o755 })
  const env = { NOTIFY_SOCKET: '/run/n', PATH: `${folder}:${process.env.PATH}` }
  const it = await daemon(['--grace', '60'], env)
  expect(await it.stop('SIGINT')).toBe(0)
  const { web, api, agent } = it.urls
  expect(readFileSync(said, 'utf8')).toBe(
    `/run/n READY=1 STATUS=${web}, ${api}, ${agent}\n/run/n STOPPING=1 STATUS=stopping\n`,
  )
})

// Node's own answers are the end, a debugger that every user of the machine can reach, and the end.
const IGNORED = ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const

test('signals that ask for nothing are logged by a daemon, and end and open nothing', async () => {
  const it = await daemon()
  for (const signal of IGNORED) {
    process.kill(it.pid, signal)
    const event = `${signal.toLowerCase()}_ignored`
    await expect.poll(() => it.lines.some((line) => line.event === event)).toBe(true)
    expect((await fetch(`${it.urls.web}/api/health`)).status).toBe(200)
  }
  expect(await it.stop()).toBe(0)
})

test('signals that ask for nothing are logged by a witness, which goes on, also where nobody reads its log any longer', async () => {
  const cwd = await emptyFolder()
  const env = { ...bare({}, cwd), WITNESS_SECRET: 'a-secret-of-24-characters-or-more' }
  const args = ['--', bin, 'witness', '--platform', 'http://127.0.0.1:1', '--port', '0']
  const child = execa(process.execPath, args, { cwd, env, extendEnv: false, reject: false })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [log, faults] = ['', '']
  child.stdout.on('data', (text: Buffer) => (log += text.toString()))
  child.stderr.on('data', (text: Buffer) => (faults += text.toString()))
  await expect.poll(() => log, { timeout: 20_000 }).toContain('"listening"')
  for (const signal of IGNORED) {
    child.kill(signal)
    await expect.poll(() => log).toContain(`"${signal.toLowerCase()}_ignored"`)
  }
  child.stdout.destroy()
  child.kill('SIGHUP')
  await expect.poll(() => faults).toContain('cannot write the output (EPIPE)')
  const [, url] = /"witness":"([^"]+)"/.exec(log) ?? []
  expect((await fetch(`${url}/health`)).status).toBe(200)
  child.kill('SIGTERM')
  expect((await child).exitCode).toBe(0)
})

test.each([
  [
    'is on a full disk',
    'exec "$@" > /dev/full',
    'platformctl: cannot write the output (ENOSPC): free some space, or write it elsewhere.',
  ],
  ['has lost its reader', 'stdout', 'platformctl: cannot write the output (EPIPE): write it elsewhere.'],
  ['has lost its reader, as standard error has', 'all', ''],
] as const)('a daemon whose log %s goes on, and says so once', async (_, how, stderr) => {
  if (how.includes('full') && !existsSync('/dev/full')) return
  const cwd = await emptyFolder()
  const ports = ['--web-port', '0', '--api-port', '0', '--agent-port', '0']
  const words = [process.execPath, '--', bin, 'daemon', ...ports, '--grace', '0']
  const script = how.startsWith('exec') ? how : 'exec "$@"'
  const options = { cwd, env: bare({}, cwd), extendEnv: false, reject: false } as const
  const child = execa('sh', ['-c', script, 'sh', ...words], options)
  onTestFinished(() => void child.kill('SIGKILL'))
  if (!how.startsWith('exec')) child.stdout.destroy()
  if (how === 'all') child.stderr.destroy()
  const record = () => JSON.parse(readFileSync(path.join(cwd, '.platformctl/daemon.json'), 'utf8'))
  await expect.poll(record, { timeout: 20_000 }).toMatchObject({ pid: child.pid })
  for (let count = 0; count < 3; count += 1)
    expect((await fetch(`${record().urls.web}/nowhere`)).status).toBe(404)
  expect(record().stoppedAt).toBeUndefined()
  child.kill('SIGTERM')
  expect(await child).toMatchObject({ exitCode: 0, stderr })
})

test('a request that never finishes does not keep the process past its deadline', async () => {
  const it = await daemon(['--deadline', '0.5'])
  const half = raw(it.urls.web)
  half.socket.write(HALF_A_SUBSCRIPTION)
  await fetch(`${it.urls.web}/api/health`)
  expect(await it.stop()).toBe(0)
  await half.ended
  expect(it.lines.at(-1)).toMatchObject({ event: 'stopped' })
})

test('logs an unhandled rejection without its text, and exits with 1', async () => {
  const script = `process.on('SIGUSR2', () => Promise.reject(new TypeError(['canary','in','an','error'].join('-'))))`
  const it = await daemon([], {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}`,
  })
  process.kill(it.pid, 'SIGUSR2')
  expect((await it.ended).exitCode).toBe(1)
  expect(it.lines.at(-1)).toMatchObject({ level: 'error', fault: 'TypeError' })
  expect(JSON.stringify(it.lines)).not.toContain('canary-in-an-error')
})

test('every line of the log is JSON with time, level, event and build; LOG_LEVEL hides all but which platform runs and where it listens', async () => {
  const loud = await daemon([], { BUILD_STAMP: '2026.11.21-abc', LOG_LEVEL: 'debug' })
  await fetch(`${loud.urls.web}/lessons/3?token=not-in-the-log`, {
    headers: { 'X-Request-Id': 'given-by-caller-1' },
  })
  await expect
    .poll(() => loud.lines.find(({ requestId }) => requestId === 'given-by-caller-1'))
    .toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      build: '2026.11.21-abc',
      event: 'request',
      message: 'a request was answered',
      service: 'web',
      method: 'GET',
      route: '/lessons/:day',
      status: 200,
      durationMs: expect.any(Number),
      requestId: 'given-by-caller-1',
    })
  for (const line of loud.lines)
    expect(line).toMatchObject({ level: expect.any(String), build: '2026.11.21-abc' })

  const quiet = await daemon([], { LOG_LEVEL: 'error' })
  await fetch(`${quiet.urls.web}/lessons/3`)
  expect(await quiet.stop()).toBe(0)
  expect(quiet.lines.map(({ event }) => event)).toEqual(['platform', 'listening'])
})
