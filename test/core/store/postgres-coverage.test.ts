import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HOUR_MS } from '../../../src/core/durations.ts'
import { linesOf } from '../../../src/core/store/journal.ts'
import { afterRestore, copyStore, openMaintenance, openStore } from '../../../src/core/store/open.ts'
import { besides, waiting } from '../../support/beside.ts'
import { dumpsOf } from '../../support/dumps.ts'
import { emptyFolder } from '../../support/folder.ts'
import { KEY, NOW } from '../../support/restoring.ts'
import { newDatabase } from '../../support/stores.ts'
import { audited, subscribe } from '../../support/subscribers.ts'

const PEOPLE = ['ada', 'grace', 'joan', 'mary', 'erin', 'rose', 'kay', 'jean', 'fran', 'ruth']
type Made = Awaited<ReturnType<typeof newDatabase>>

/** A store on a server that was never exported, its dumps, and exports that any machine makes by its own clock. */
async function stored(made?: Made) {
  const { address, query, url } = made ?? (await newDatabase('a store'))
  const folder = await emptyFolder()
  const { dump, restore } = dumpsOf((...statements) => query(statements.join(';')))
  const store = await openStore(address)
  await store.getOrCreate('address_key', () => KEY)
  if (made === undefined) await subscribe(store, 'ada', NOW)
  await store.close()
  const exported = async (name: string, at = NOW, { edit = (text: string) => text } = {}) => {
    const maintenance = await openMaintenance(address)
    const entries = await maintenance.journal(at).finally(() => maintenance.close())
    const file = path.join(folder, name)
    await writeFile(file, edit(linesOf(entries)))
    return file
  }
  const leave = async (name: string, at = NOW) => {
    const again = await openStore(address)
    await again.course.unsubscribe({ id: name, now: at })
    await again.close()
  }
  /** How `db after-restore` ends: accepted, or the reason why not. */
  const restoredWith = async (journal: string | undefined, now = NOW + HOUR_MS) => {
    const audit = { ...audited('restore', now), details: 'after-restore' }
    const options = { journal, now, audit, withoutJournal: journal === undefined }
    return afterRestore(address, options).then(
      () => 'accepted',
      (error: Error) => / (is not the journal of this store|is older)/.exec(error.message)?.[1],
    )
  }
  const left = async () => {
    const rows = await query(`SELECT id FROM platformctl.subscription WHERE state = 'unsubscribed'`)
    return new Set(rows.rows.map(({ id }) => String(id)))
  }
  return { address, url, folder, dump, restore, exported, leave, restoredWith, left }
}

test('a journal from before a dump does not cover it, however far ahead the clock of its machine is', async () => {
  const it = await stored()
  const file = await it.exported('ahead', NOW + 10 * HOUR_MS)
  await it.dump('d')
  await it.leave('ada', NOW + 1)
  await it.restore('d')
  expect(await it.restoredWith(file)).toBe('is older')
  expect(await it.left()).toEqual(new Set())
}, 60_000)

test('a journal from after a dump covers it, however far behind the clock of its machine is', async () => {
  const it = await stored()
  await it.dump('first')
  await it.exported('before', NOW)
  await it.dump('second')
  await it.leave('ada', NOW + HOUR_MS)
  const file = await it.exported('behind', NOW - 10 * HOUR_MS)
  for (const dump of ['first', 'second']) {
    await it.restore(dump)
    for (let twice = 0; twice < 2; twice += 1) expect(await it.restoredWith(file)).toBe('accepted')
    expect(await it.left()).toEqual(new Set(['ada']))
  }
}, 60_000)

test('a journal of the time that a restore left behind does not cover what began with it', async () => {
  const it = await stored()
  await it.exported('1')
  await it.dump('before')
  const [, lost, longLost] = [await it.exported('2'), await it.exported('3'), await it.exported('4')]
  await it.restore('before')
  expect(await it.restoredWith(lost)).toBe('accepted')
  // The next may be known only now, as the daemon was not started yet.
  expect(await it.restoredWith(longLost)).toBe('accepted')
  await it.dump('at_once')
  await it.leave('ada')
  const file = await it.exported('5')
  await it.dump('later')
  await it.restore('later')
  expect(await it.restoredWith(longLost)).toBe('is older')
  await it.restore('at_once')
  expect(await it.restoredWith(longLost)).toBe('is older')
  expect(await it.restoredWith(file)).toBe('accepted')
  // The store was lost again before the next dump.
  await it.restore('before')
  expect(await it.restoredWith(file)).toBe('accepted')
  expect(await it.left()).toEqual(new Set(['ada']))
}, 60_000)

test('numbers are not used again where nobody ran after-restore, once the restored database was exported', async () => {
  const it = await stored()
  await it.exported('1')
  await it.dump('before')
  await it.exported('2')
  const lost = await it.exported('3')
  await it.restore('before')
  await it.exported('4')
  await it.dump('later')
  await it.restore('later')
  expect(await it.restoredWith(lost)).toBe('is older')
}, 60_000)

test('of exports at the same time each has a number, and covers the dump before them', async () => {
  const it = await stored()
  await it.exported('0')
  await it.dump('d')
  const files = await Promise.all(['1', '2', '3', '4'].map((name) => it.exported(name)))
  await it.dump('e')
  for (const [dump, answer] of [
    ['d', 'accepted'],
    ['e', 'is older'],
  ] as const)
    for (const file of files) {
      await it.restore(dump)
      expect(await it.restoredWith(file)).toBe(answer)
    }
}, 60_000)

test('a journal that has begun before a dump does not cover it, as it may have read what people were before', async () => {
  const it = await stored()
  const beside = await besides(it.url)
  await beside.query('BEGIN; LOCK TABLE subscription_event IN ACCESS EXCLUSIVE MODE')
  const file = it.exported('slow')
  expect(await waiting(await besides(it.url))).toMatchObject({
    query: expect.stringContaining('subscription_event'),
  })
  const { dump } = dumpsOf((...statements) => beside.query(statements.join(';')))
  await dump('d')
  await beside.query('COMMIT')
  await it.restore('d')
  expect(await it.restoredWith(await file)).toBe('is older')
}, 60_000)

test('a journal from before a store was copied does not cover the copy, and one of the copy does', async () => {
  const it = await stored()
  const stale = await it.exported('1', NOW + HOUR_MS)
  const file = { kind: 'sqlite', file: path.join(it.folder, 'copy.sqlite') } as const
  await copyStore(it.address, file, NOW)
  const made = await newDatabase()
  await copyStore(file, made.address, NOW)
  const copy = await stored(made)
  await copy.dump('d')
  await copy.leave('ada')
  const own = await copy.exported('2')
  await copy.restore('d')
  expect(await copy.restoredWith(stale)).toBe('is older')
  expect(await copy.restoredWith(own)).toBe('accepted')
}, 60_000)

test('where neither the dump nor the journal has a number, as builds before wrote them, times decide, and none to come', async () => {
  const it = await stored()
  await it.dump('d')
  const edit = (text: string) => text.replace(/,"number":\d+/, '')
  const [before, after, ahead] = [NOW - 1, NOW + 1, NOW + 9 * HOUR_MS]
  for (const [at, answer] of [
    [before, 'is older'],
    [after, 'accepted'],
    [ahead, 'is older'],
  ] as const) {
    const file = await it.exported(`${at}`, at, { edit })
    await it.restore('d')
    expect(await it.restoredWith(file)).toBe(answer)
  }
  await it.dump('numbered')
  const unnumbered = await it.exported('unnumbered', NOW + 1, { edit })
  await it.exported('numbered')
  await it.dump('again')
  await it.restore('again')
  expect(await it.restoredWith(unnumbered)).toBe('is older')
}, 60_000)

const clock = fc.integer({ min: -1000, max: 1000 }).map((hours) => NOW + hours * HOUR_MS)
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('leave' as const), at: clock }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('export' as const), at: clock }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('dump' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('restore' as const),
      dump: fc.nat(9),
      file: fc.nat(9),
      isFollowed: fc.boolean(),
    }),
  },
)

test('whatever clocks say, a restore is accepted with a journal that is newer, and with no other, and keeps out who left', async () => {
  const people = await newDatabase('a store')
  const store = await openStore(people.address)
  for (const name of PEOPLE) await subscribe(store, name, NOW)
  await store.close()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 18 }), async (steps) => {
      const it = await stored(await newDatabase(new URL(people.url)))
      /** Where a dump or an export is in time, and those that its store had before it. */
      type Point = { readonly name: string; readonly order: number; readonly past: readonly number[] }
      const [dumps, files]: [Point[], Point[]] = [[], []]
      let past: readonly number[] = []
      let gone = new Map<string, number>()
      for (const [order, one] of steps.entries()) {
        const point = { name: `p${order}`, order, past: [...past, order] }
        const dump = one.kind === 'restore' && dumps[one.dump % dumps.length]
        const file = one.kind === 'restore' && files[one.file % files.length]
        if (one.kind === 'leave') {
          const name = PEOPLE.find((person) => !gone.has(person))
          if (name === undefined) continue
          await it.leave(name, one.at)
          gone.set(name, order)
        } else if (one.kind === 'export') {
          files.push({ ...point, name: await it.exported(point.name, one.at) })
          past = point.past
        } else if (one.kind === 'dump') {
          dumps.push(point)
          await it.dump(point.name)
          past = point.past
        } else if (one.kind === 'restore' && dump && !one.isFollowed) {
          // Nobody runs after-restore: what nobody knows is lost, and numbers go on with the next export.
          await it.restore(dump.name)
          const left = await it.left()
          gone = new Map([...gone].filter(([name]) => left.has(name)))
          files.push({ name: await it.exported(point.name), order, past: [...dump.past, order] })
          past = [...dump.past, order]
        } else if (dump && file) {
          await it.restore(dump.name)
          const answer = await it.restoredWith(file.name)
          expect(await it.restoredWith(file.name)).toBe(answer)
          if (file.past.includes(dump.order)) expect(answer).toBe('accepted')
          if (answer === 'accepted') expect(file.order).toBeGreaterThan(dump.order)
          else expect(await it.restoredWith(undefined)).toBe('accepted')
          const left = await it.left()
          const lost = [...gone].filter(([name]) => !left.has(name))
          // Those who left after the journal: the command says that they are lost.
          if (answer === 'accepted') expect(lost.filter(([, at]) => at < file.order)).toEqual([])
          gone = new Map([...gone].filter(([name]) => left.has(name)))
          past = dump.past
        }
      }
    }),
    { numRuns: Number(process.env.COVERAGE_RUNS ?? 8) },
  )
}, 120_000)
