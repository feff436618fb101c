import { spawn } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../src/core/store/open.ts'
import { bin, type Daemon, platformctl, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { hasProgram } from '../support/programs.ts'
import { addressOf, postgresServer } from '../support/stores.ts'
import { subscribe } from '../support/subscribers.ts'
import { apiSink } from '../torture/sinks.ts'

const seed = fileURLToPath(new URL('../../scripts/runbooks/seed.ts', import.meta.url))
const here = hasProgram(['strace', '-e', 'inject=fsync:error=EIO', 'true'], 'strace')
const SECRET = 'dispatch-secret-of-the-disk-tests'
/** SQLite calls one or the other, depending on how it was built. */
const SYNC = 'fsync,fdatasync'

/** A daemon with lessons due and a mail API that keeps what it was given. */
async function course(...people: string[]) {
  const folder = await emptyFolder()
  const file = path.join(folder, 'platform.sqlite')
  await execa(process.execPath, [seed, file, ...people.map((name) => `${name}=due`)])
  const sink = await apiSink()
  onTestFinished(() => sink.close())
  const env = { ...sink.env, EMAIL_DISPATCH_SECRET: SECRET }
  const daemon = await startDaemon(['--data', folder, '--no-schedule'], { cwd: folder, env })
  onTestFinished(async () => void (await daemon.stop('SIGKILL')))
  const beside = new Database(file)
  onTestFinished(() => void beside.close())
  const sentDays = beside.prepare('SELECT sent_days FROM subscription ORDER BY id').pluck()
  return {
    folder,
    file,
    sink,
    env,
    daemon,
    beside,
    sentDays: () => sentDays.all(),
    /** As if the leases had run out, which takes 90 seconds. */
    endLeases: () => void beside.exec('UPDATE subscription SET next_attempt_at = 1, lease_until = NULL'),
    dispatch: () => dispatch(daemon),
    subscribe: (email: string) =>
      answerOf(
        fetch(`${daemon.urls.web}/api/email/subscribe`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ email }),
        }),
      ),
  }
}

async function answerOf(asked: Promise<Response>) {
  const answer = await asked
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

async function dispatch({ urls }: Daemon) {
  return answerOf(
    fetch(`${urls.web}/api/email/dispatch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${SECRET}` },
    }),
  )
}

/** From now on a system call of the daemon on a file fails; gives what ends that. */
async function breakDisk({ pid }: Daemon, file: string, calls: string, error: string) {
  const strace = spawn(
    'strace',
    ['-f', '-p', String(pid), '-P', file, '-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}`],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const ended = new Promise<void>((resolve) => strace.on('close', () => resolve()))
  let said = ''
  await new Promise<void>((resolve, reject) => {
    void ended.then(() => reject(new Error(said)))
    strace.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes(' attached')) resolve()
    })
  })
  const heal = async () => {
    strace.kill('SIGINT')
    await ended
  }
  onTestFinished(heal)
  return { heal, hits: () => said.split('(INJECTED)').length - 1 }
}

const UNAVAILABLE = { status: 503, body: { code: 'store_unavailable' } }

describe.skipIf(!here).each(['EIO', 'ENOSPC'])('writes that fail with %s', (error) => {
  test('before a send: answered 503, nothing goes out, and it is over when the disk is well', async () => {
    const it = await course('ada', 'grace')
    const disk = await breakDisk(it.daemon, `${it.file}-wal`, 'pwrite64', error)
    expect(await it.dispatch()).toMatchObject(UNAVAILABLE)
    expect(disk.hits()).toBeGreaterThan(0)
    expect(it.sink.deliveries).toEqual([])
    await disk.heal()
    expect(await it.dispatch()).toMatchObject({ status: 200, body: { sent: 2, remaining: 0 } })
    expect(it.sentDays()).toEqual(['[1]', '[1]'])
    expect(it.sink.deliveries).toHaveLength(2)
  })

  test('while a message is out: its outcome is recorded when the disk is well again', async () => {
    const it = await course('ada')
    let disk: Awaited<ReturnType<typeof breakDisk>> | undefined
    it.sink.hold = async () => {
      disk = await breakDisk(it.daemon, `${it.file}-wal`, 'pwrite64', error)
    }
    const dispatched = it.dispatch()
    await vi.waitUntil(() => (disk?.hits() ?? 0) > 0, { timeout: 10_000 })
    expect(it.sentDays()).toEqual(['[]'])
    await disk?.heal()
    expect(await dispatched).toMatchObject({ status: 200, body: { sent: 1, remaining: 0 } })
    expect(it.sentDays()).toEqual(['[1]'])
    expect(it.sink.deliveries).toHaveLength(1)
    expect(it.sink.faults).toEqual([])
    expect(it.beside.pragma('integrity_check', { simple: true })).toBe('ok')
  })
})

test.skipIf(!here)('a lock taken while a message is in flight only delays its record', async () => {
  const it = await course('ada')
  it.sink.hold = async () => void it.beside.exec('BEGIN IMMEDIATE')
  const dispatched = it.dispatch()
  await vi.waitUntil(() => it.sink.deliveries.length === 1, { timeout: 10_000 })
  // Answered when the store has waited for a lock as long as it does by itself: the record was tried by then.
  expect(await it.subscribe('grace@example.com')).toMatchObject(UNAVAILABLE)
  it.beside.exec('ROLLBACK')
  expect(await dispatched).toMatchObject({ status: 200, body: { sent: 1, remaining: 0 } })
  expect(it.sentDays()).toEqual(['[1]'])
  expect(it.sink.deliveries).toHaveLength(1)
})

test('a database lost while a message is in flight only delays its record', async () => {
  const address = await addressOf('postgres')
  if (address?.kind !== 'postgres') throw new TypeError('this is its address')
  const store = await openStore(address)
  await subscribe(store, 'ada', Date.now() - 65 * 60 * 1000)
  await store.close()
  const url = address.url.reveal()
  const database = new URL(url).pathname.slice(1)
  const server = await postgresServer()
  const asAdmin = (sql: string) => server.query(url.replace(`/${database}`, '/postgres'), sql)

  const sink = await apiSink()
  onTestFinished(() => sink.close())
  const cwd = await emptyFolder()
  const env = { ...sink.env, EMAIL_DISPATCH_SECRET: SECRET, STORE_URL: url }
  const daemon = await startDaemon(['--data', cwd, '--no-schedule'], { cwd, env })
  onTestFinished(async () => void (await daemon.stop('SIGKILL')))
  const gone = Promise.withResolvers<void>()
  sink.hold = async () => {
    await asAdmin(`ALTER DATABASE ${database} ALLOW_CONNECTIONS false`)
    await asAdmin(
      `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${database}'`,
    )
    // Its answer shows that the daemon has looked at its connections since: what follows uses none that is lost.
    await fetch(`${daemon.urls.web}/api/health`)
    gone.resolve()
  }
  const dispatched = dispatch(daemon)
  await gone.promise
  await asAdmin(`ALTER DATABASE ${database} ALLOW_CONNECTIONS true`)
  expect(await dispatched).toMatchObject({ status: 200, body: { sent: 1, remaining: 0 } })
  expect(sink.deliveries).toHaveLength(1)
  expect(sink.faults).toEqual([])
})

describe.skipIf(!here)('a disk that does not confirm a write', () => {
  test('ends the daemon with 70 for a supervisor to restart it, and no subscriber is mailed twice', async () => {
    const it = await course('ada', 'grace')
    let broken: Promise<unknown> | undefined
    it.sink.hold = async () => {
      broken ??= breakDisk(it.daemon, `${it.file}-wal`, SYNC, 'EIO')
      await broken
    }
    expect(await it.dispatch()).toMatchObject(UNAVAILABLE)
    const { exitCode, stderr } = await it.daemon.ended
    expect(exitCode).toBe(70)
    expect(stderr).toBe(
      'platformctl: the disk did not confirm a write, so the daemon ended: check the disk, then start it again.',
    )
    expect(it.daemon.lines.filter(({ event }) => event === 'store_lost')).toMatchObject([
      { level: 'error', fault: 'SQLITE_IOERR_FSYNC' },
    ])
    expect(it.daemon.lines.at(-1)).toMatchObject({ event: 'stopped' })
    it.sink.hold = undefined
    it.endLeases()
    const run = { cwd: it.folder, env: it.env }
    const again = await platformctl(['dispatch', '--local', '--data', it.folder], run)
    expect(again).toMatchObject({ exitCode: 0 })
    expect(it.sentDays()).toEqual(['[1]', '[1]'])
    expect(it.sink.deliveries).toHaveLength(2)
    expect(it.beside.pragma('integrity_check', { simple: true })).toBe('ok')
  })

  test('ends a command with one sentence and 3', async () => {
    const it = await course('ada')
    await it.daemon.stop()
    const { exitCode, stderr } = await execa(
      'strace',
      ['-f', '-o', '/dev/null', '-P', `${it.file}-wal`, '-e', `inject=${SYNC}:error=EIO`].concat(
        process.execPath,
        ['--', bin, 'course', 'erase', 'ada@example.com', '--yes', '--data', it.folder],
      ),
      { reject: false, cwd: it.folder },
    )
    expect(stderr).toMatch(/^platformctl: The disk did not confirm a write, so it may not have been recorded/)
    expect(exitCode).toBe(3)
  })
})
