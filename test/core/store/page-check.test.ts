import { closeSync, openSync, statSync, writeSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createPageCheck } from '../../../src/core/store/sqlite/page-check.ts'
import { emptyFolder } from '../../support/folder.ts'

async function database() {
  const file = path.join(await emptyFolder(), 'pages.sqlite')
  const open = new Database(file)
  open.exec('CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)')
  const insert = open.prepare('INSERT INTO t (text) VALUES (?)')
  for (let row = 0; row < 200; row += 1) insert.run('x'.repeat(500))
  return { file, open }
}

function damage(file: string): void {
  const at = openSync(file, 'r+')
  for (let page = 2; page < statSync(file).size / 4096; page += 1)
    writeSync(at, Buffer.alloc(4096, 0xa5), 0, 4096, page * 4096)
  closeSync(at)
}

test.each([
  ['here, as it is small', {}],
  ['in a thread, as it is not', { smallBytes: 0 }],
])('the pages of a file are read %s, and a damaged one is found', async (_, options) => {
  const { file, open } = await database()
  open.close()
  const pages = createPageCheck(file, { leastPauseMs: 0, patienceMs: 15_000, ...options })
  onTestFinished(() => pages.close())
  expect(await pages.check()).toBe(true)
  damage(file)
  await expect.poll(() => pages.check()).toBe(false)
})

test('skips the page check of a locked file without waiting', async () => {
  const { file, open } = await database()
  const pages = createPageCheck(file, { leastPauseMs: 0 })
  onTestFinished(() => void open.close())
  open.exec('BEGIN EXCLUSIVE')
  expect(await pages.check()).toBe(true)
  open.exec('COMMIT')
  expect(await pages.check()).toBe(true)
})

test.each([
  [1, 5000],
  [50, 5000],
  [60, 6000],
])(
  'after a read that took %i ms the pages are read again %i ms later, and not before',
  async (tookMs, pauseMs) => {
    const { file, open } = await database()
    open.close()
    let now = 0
    // Each look at the clock finds that as much time has passed as a read takes.
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => {
      now += tookMs
      return now
    })
    onTestFinished(() => spy.mockRestore())
    const pages = createPageCheck(file)
    expect(await pages.check()).toBe(true)
    const nextAt = now + pauseMs
    damage(file)
    now = nextAt - 1 - tookMs
    expect(await pages.check()).toBe(true)
    now = nextAt - tookMs
    expect(await pages.check()).toBe(false)
  },
)
