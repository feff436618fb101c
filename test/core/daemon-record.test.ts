import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  type DaemonRecord,
  isRunning,
  leavePointer,
  ownPointerFolder,
  pointerFolders,
  pointersIn,
  readRecord,
  recordDaemon,
  recordedStore,
  recordFile,
  writeRecord,
} from '../../src/core/daemon-record.ts'
import { secret } from '../../src/core/secret.ts'
import { emptyFolder } from '../support/folder.ts'

const recordOf = (pid: number, parts: Partial<DaemonRecord> = {}): DaemonRecord => ({
  version: 1,
  pid,
  host: hostname(),
  startedAt: '2026-11-22T00:00:00.000Z',
  build: null,
  store: { kind: 'sqlite', location: '/data/platform.sqlite' },
  envFiles: [],
  schedule: true,
  urls: {},
  ...parts,
})

/** A process that runs until the end of the test, and a child of it that has ended but was never waited for. */
async function processes() {
  const parent = spawn('sh', ['-c', 'sleep 0.02 & echo $!; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  onTestFinished(() => void parent.kill('SIGKILL'))
  const [said] = (await once(parent.stdout, 'data')) as [Buffer]
  if (parent.pid === undefined) throw new Error('the process did not start')
  return { running: parent.pid, ended: Number(said.toString()) }
}

const posix = process.platform !== 'win32'

test('the record is for its owner only, and one that cannot be put in place leaves nothing beside it', async () => {
  const folder = await emptyFolder()
  // Left by a crash, and open to everybody.
  writeFileSync(`${recordFile(folder)}.${process.pid}@${hostname()}`, '', { mode: 0o644 })
  writeRecord(folder, recordOf(process.pid))
  if (posix) expect(statSync(recordFile(folder)).mode & 0o777).toBe(0o600)
  expect(readRecord(folder)).toEqual(recordOf(process.pid))

  const taken = await emptyFolder()
  mkdirSync(path.join(recordFile(taken), 'folder'), { recursive: true })
  expect(() => writeRecord(taken, recordOf(process.pid))).toThrow()
  expect(readdirSync(taken)).toEqual([path.basename(recordFile(taken))])
})

test('the starts of one that has stopped are kept while another service goes on', async () => {
  const folder = await emptyFolder()
  const { running } = await processes()
  writeRecord(folder, recordOf(running, { starts: [1] }))
  recordDaemon(folder, recordOf(process.pid, { starts: [1, 2], stoppedAt: '2026-11-22T01:00:00.000Z' }))
  expect(readRecord(folder)).toMatchObject({ pid: running, starts: [1, 2] })
})

test.runIf(posix)('a pipe in the place of a record or a pointer holds up nobody', async () => {
  const folder = await emptyFolder()
  execFileSync('mkfifo', [recordFile(folder), path.join(folder, `1@${hostname()}.json`)])
  expect(readRecord(folder)).toBeUndefined()
  expect(pointersIn(folder)).toEqual([])
})

test.runIf(posix)(
  'a record names all daemons of its folder that run, first the one that wrote it last',
  async () => {
    const folder = await emptyFolder()
    const { running, ended } = await processes()
    await expect.poll(() => isRunning({ pid: ended })).toBe(false)
    expect(isRunning({ pid: running })).toBe(true)
    // Of another machine or container, only its record can say.
    for (const stoppedAt of [undefined, '2026-11-22T01:00:00.000Z'])
      expect(isRunning({ pid: ended, host: 'elsewhere', ...(stoppedAt && { stoppedAt }) })).toBe(!stoppedAt)
    recordDaemon(folder, recordOf(ended))
    recordDaemon(folder, recordOf(running))
    expect(readRecord(folder)).toEqual(recordOf(running))
    recordDaemon(folder, recordOf(process.pid))
    expect(readRecord(folder)).toEqual({ ...recordOf(process.pid), others: [recordOf(running)] })
    // One that stops makes room for one that still runs.
    const stopped = recordOf(process.pid, { stoppedAt: '2026-11-22T01:00:00.000Z' })
    recordDaemon(folder, stopped)
    expect(readRecord(folder)).toEqual(recordOf(running))
  },
)

test('daemons of other containers, each its process 1, are kept until they say that they stopped or start anew', async () => {
  const folder = await emptyFolder()
  const of = (service: string, host: string) =>
    recordOf(process.pid, { host, urls: { [service]: `http://127.0.0.1:${service.length}` } })
  const hosts = () =>
    [readRecord(folder) ?? [], readRecord(folder)?.others ?? []].flat().map(({ host }) => host)
  for (const one of [of('web', 'c1'), of('api', 'c2'), of('agent', 'c3')]) recordDaemon(folder, one)
  expect(hosts()).toEqual(['c3', 'c2', 'c1'])
  // Killed, and started again in a new container.
  recordDaemon(folder, of('api', 'c4'))
  expect(hosts()).toEqual(['c4', 'c3', 'c1'])
  recordDaemon(folder, { ...of('agent', 'c3'), stoppedAt: '2026-11-22T01:00:00.000Z' })
  expect(hosts()).toEqual(['c4', 'c1'])
})

test.runIf(posix)(
  'a pointer leads to a process that runs on this machine; those of others are left alone',
  async () => {
    const folder = await emptyFolder()
    const { ended } = await processes()
    await expect.poll(() => isRunning({ pid: ended })).toBe(false)
    const pointer = (name: string, pid: number) =>
      writeFileSync(path.join(folder, name), JSON.stringify({ version: 1, pid, dataFolder: '/data' }))
    pointer(`${ended}@${hostname()}.json`, ended)
    pointer(`${process.pid}@elsewhere.json`, process.pid)
    pointer(`${ended}@elsewhere.json`, ended)
    expect(pointersIn(folder)).toEqual([])
    const leave = leavePointer(folder, '/data')
    expect(pointersIn(folder)).toEqual([expect.objectContaining({ pid: process.pid, dataFolder: '/data' })])
    leave()
    expect(readdirSync(folder).sort()).toEqual(
      [`${process.pid}@elsewhere.json`, `${ended}@elsewhere.json`].sort(),
    )
  },
)

test.skipIf(process.platform === 'win32')(
  'a record is not written through a link under its scratch name',
  async () => {
    const [folder, elsewhere] = [await emptyFolder(), path.join(await emptyFolder(), 'file')]
    symlinkSync(elsewhere, `${recordFile(folder)}.${process.pid}@${hostname()}`)
    writeRecord(folder, recordOf(process.pid))
    expect(readRecord(folder)?.pid).toBe(process.pid)
    expect(existsSync(elsewhere)).toBe(false)
  },
)

test.runIf(posix)(
  'a daemon is found by its user in the state folder, and by everybody if root or the system runs it',
  () => {
    const [own, state, everybody] = [
      '/h/.local/state/platformctl/daemons',
      '/s/platformctl/daemons',
      '/run/platformctl',
    ]
    const isRoot = process.geteuid?.() === 0
    for (const [env, left, looked] of [
      [{ HOME: '/h' }, isRoot ? everybody : own, own],
      [{ HOME: '/h', XDG_STATE_HOME: '/s' }, state, state],
      [{ HOME: '/h', RUNTIME_DIRECTORY: everybody }, everybody, own],
      [{ HOME: 'h' }, isRoot ? everybody : undefined, undefined],
    ] as const) {
      expect(ownPointerFolder(env)).toBe(left)
      expect(pointerFolders(env)).toEqual([...(looked === undefined ? [] : [looked]), everybody])
    }
  },
)

test('a record names a PostgreSQL by its server and database, and no user or password of it', () => {
  const url = secret('postgres://canary:canary@db.example:5433/platform?options=canary')
  expect(recordedStore({ kind: 'postgres', url })).toEqual({
    kind: 'postgres',
    location: 'db.example:5433/platform',
  })
})
