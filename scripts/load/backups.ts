import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { openMaintenance, openStore, restoreStore } from '../../src/core/store/open.ts'
import { HOSTILE_SQL } from './corpus.ts'
import { type Dice, dice } from './random.ts'

const LONGEST_MS = 10_000
const NOW = Date.UTC(2026, 10, 21)
/** Errors with a sentence of ours; any other would be an internal fault. */
const OURS = new Set(['StoreMaintenanceError', 'StoreOpenError'])

export interface BackupFuzz {
  /** Restores the spoiled backup with this number over a store. Gives the fault found, or undefined. */
  readonly faultOf: (seed: number, index: number) => Promise<string | undefined>
  readonly close: () => Promise<void>
}

/** Restores spoiled backups over a store of its own: refused whole, or restored whole, and nothing left beside it. */
export async function backupFuzz(): Promise<BackupFuzz> {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-backups-'))
  const file = path.join(folder, 'platform.sqlite')
  const store = await openStore({ kind: 'sqlite', file })
  for (let n = 0; n < 20; n += 1) {
    const address = `person-${n}@example.com`
    await store.course.requestConfirmation({
      course: 'quantum',
      identity: address,
      address,
      id: `person-${n}`,
      tokenHash: `hash-${n}`,
      now: NOW,
    })
  }
  await store.close()
  const maintenance = await openMaintenance({ kind: 'sqlite', file })
  await maintenance.backup(path.join(folder, 'good.sqlite.gz'), NOW)
  await maintenance.close()
  const image = gunzipSync(await readFile(path.join(folder, 'good.sqlite.gz')))
  const digest = async () =>
    createHash('sha256')
      .update(await readFile(file))
      .digest('hex')
  const restored = async (seed: number, index: number): Promise<string | undefined> => {
    const random = dice((seed ^ Math.imul(index + 1, 0xc2b2ae35)) >>> 0)
    const name = `${index}${random.pick(['.sqlite', '.sqlite.gz', '.sqlite.zst', '.sqlite.gz.age'])}`
    const from = path.join(folder, name)
    await writeFile(from, await spoiled(random, image, path.join(folder, `${index}.image`)))
    const before = await digest()
    const began = performance.now()
    let kept: string | undefined
    let fault: string | undefined
    try {
      kept = (
        await restoreStore(
          { kind: 'sqlite', file },
          { from, force: true, now: NOW + index * 1000, identities: [] },
        )
      ).kept
    } catch (error) {
      if (!(error instanceof Error && OURS.has(error.name)))
        fault = `a backup is thrown at: ${error instanceof Error ? `${error.name} ${error.message}` : String(error)}`
      else if ((await digest()) !== before) fault = 'a refused backup changed the store'
    }
    if (performance.now() - began > LONGEST_MS) fault ??= `a restore took longer than ${LONGEST_MS} ms`
    for (const one of [from, kept, `${folder}/${index}.image`]) if (one) await rm(one, { force: true })
    const beside = (await readdir(folder)).filter((one) => !/^(?:platform(?:-journal)?\.|good\.)/.test(one))
    if (beside.length > 0) fault ??= `a restore leaves ${beside.join(', ')}`
    return fault
  }
  // One at a time: they share the store.
  let last: Promise<unknown> = Promise.resolve()
  return {
    faultOf(seed, index) {
      const next = last.then(() => restored(seed, index))
      last = next.catch(() => {})
      return next
    },
    close: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The image with bytes changed, cut or repeated, or with objects of a stranger, packed in one of the ways or in none. */
async function spoiled(random: Dice, image: Buffer, file: string): Promise<Buffer> {
  let bytes = Buffer.from(image)
  if (random.chance(0.4)) {
    await writeFile(file, bytes)
    const database = new Database(file)
    try {
      for (let n = 0; n <= random.below(3); n += 1) database.exec(random.pick(HOSTILE_SQL))
    } catch {
      // One statement may make the next impossible.
    }
    database.pragma('journal_mode = DELETE')
    database.close()
    bytes = await readFile(file)
  }
  for (let n = random.below(6); n > 0; n -= 1)
    bytes[random.below(random.chance(0.5) ? 100 : bytes.length)] = random.below(256)
  if (random.chance(0.2)) bytes = bytes.subarray(0, random.below(bytes.length + 1))
  if (random.chance(0.1)) bytes = Buffer.concat([bytes, bytes])
  const packed = random.pick([bytes, gzipSync(bytes), zstdCompressSync(bytes)])
  if (random.chance(0.3) && packed.length > 0) packed[random.below(packed.length)] = random.below(256)
  return random.chance(0.2) ? packed.subarray(0, random.below(packed.length + 1)) : packed
}
