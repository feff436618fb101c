import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import type { Seeded } from './seeded.ts'

/** Values that a person, a script or a bad disk leaves in place of a list of days. */
const DAMAGE = ['', 'null', '7', '"1,2"', '{"1":true}', '[1,', '[1,"two"]', '[0]'] as const

/** Files here cost no disk: what a disk does is not simulated. */
const MEMORY = '/dev/shm'

/** A new folder for files of a simulation. */
export const scratchFolder = (): Promise<string> =>
  mkdtemp(path.join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'platformctl-simulation-'))

/** A store in a file, and a hand that damages rows in it behind the program's back and repairs them when asked. */
export async function openHand() {
  const folder = await scratchFolder()
  const file = path.join(folder, 'store.sqlite')
  const damaged = new Map<
    string,
    { readonly enrolment: number; readonly days: string; readonly as: string }
  >()
  let database: Database.Database | undefined
  const open = () => {
    database ??= new Database(file)
    return database
  }
  return {
    file,
    /** One person who was sent something. */
    damage(random: Seeded): void {
      const rows = open()
        .prepare(
          `SELECT id, enrolment, sent_days AS days FROM subscription
           WHERE state = 'confirmed' AND json_valid(sent_days) AND sent_days <> '[]' ORDER BY identity`,
        )
        .all() as { id: string; enrolment: number; days: string }[]
      const row = rows[random.between(0, rows.length - 1)]
      const as = random.pick(DAMAGE)
      if (row === undefined || damaged.has(row.id)) return
      damaged.set(row.id, { ...row, as })
      open().prepare('UPDATE subscription SET sent_days = ? WHERE id = ?').run(as, row.id)
    },
    /** Only what still is as the hand left it: a mark or a new enrolment may have written the days anew. */
    repair(): void {
      const put = open().prepare(
        'UPDATE subscription SET sent_days = ? WHERE id = ? AND enrolment = ? AND sent_days = ?',
      )
      for (const [id, { enrolment, days, as }] of damaged) put.run(days, id, enrolment, as)
      damaged.clear()
    },
    async close(): Promise<void> {
      database?.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
