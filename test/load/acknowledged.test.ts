import { cp } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { DAY_MS } from '../../src/core/durations.ts'
import { openStore } from '../../src/core/store/open.ts'
import { platformctl } from '../support/cli.ts'
import { folderWith } from '../support/folder.ts'
import { begin } from '../support/learning.ts'

const PEOPLE = 5000

async function fill(file: string): Promise<void> {
  const { course, close } = await openStore({ kind: 'sqlite', file })
  const now = Date.now() - DAY_MS
  for (let n = 0; n < PEOPLE; n += 1) {
    const address = `p${n}@example.com`
    await course.enrol({
      course: 'quantum',
      identity: address,
      mailboxKey: address,
      address,
      id: `p${n}`,
      begin,
      now,
    })
  }
  await close()
}

/** What another process does meanwhile, and the column and the value by which the list of people shows it. */
const MEANWHILE: readonly (readonly [args: readonly string[], shows: (people: string) => boolean])[] = [
  [['course', 'cancel', 'p7@example.com'], (people) => /^p7@.*,unsubscribed,/m.test(people)],
  [['course', 'erase', 'p7@example.com', '--yes'], (people) => !people.includes('p7@')],
]

test('what a command acknowledges while a store is restored is true afterwards, whenever it came', {
  timeout: 300_000,
}, async () => {
  const cwd = await folderWith({})
  await fill(path.join(cwd, 'before/platform.sqlite'))
  const at = (data: string, ...args: readonly string[]) => platformctl([...args, '--data', data], { cwd })
  expect(await at('before', 'db', 'backup', 'b.sqlite')).toMatchObject({ exitCode: 0 })
  const outcomes = new Set<string>()
  for (const [command, shows] of MEANWHILE)
    for (let lateMs = 0; lateMs < 400; lateMs += 25) {
      const data = `${command[1]}-${lateMs}`
      await cp(path.join(cwd, 'before'), path.join(cwd, data), { recursive: true })
      const [restored, done] = await Promise.all([
        at(data, 'db', 'restore', 'b.sqlite', '--force'),
        new Promise((resolve) => setTimeout(resolve, lateMs)).then(() => at(data, ...command)),
      ])
      outcomes.add(`${restored.exitCode} ${done.exitCode}`)
      const { stdout } = await at(data, 'course', 'export')
      if (done.exitCode === 0)
        expect(shows(stdout), `${data}: ${restored.exitCode} ${restored.stderr}`).toBe(true)
    }
  // Some restores were held up, and some were not: both ways were tried.
  expect([...outcomes].sort()).toEqual(expect.arrayContaining(['0 0', '1 0']))
})
