import { rm } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { openMaintenance, restoreStore } from '../../src/core/store/open.ts'

const WRITER = fileURLToPath(new URL('store-writer.ts', import.meta.url))

export interface LoadResult {
  readonly backups: number
  /** Rows acknowledged before the last backup began. */
  readonly rows: number
  /** Each backup that lacks an acknowledged row or does not verify. */
  readonly faults: readonly string[]
}

/** Backs a store up again and again while another process writes to it, restores each and counts what is missing. */
export async function backupsUnderLoad(
  folder: string,
  backups: number,
  onBackup?: (done: number, faults: number) => void,
): Promise<LoadResult> {
  const file = path.join(folder, 'platform.sqlite')
  const faults: string[] = []
  let acknowledged = 0
  let run = 0
  let writer = startWriter()
  try {
    while (acknowledged === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    for (let index = 0; index < backups; index += 1) {
      // A store of bounded size, so that the thousandth copy costs what the first did.
      if (acknowledged > 20_000) {
        await stopWriter()
        for (const end of ['', '-wal', '-shm']) await rm(`${file}${end}`, { force: true })
        acknowledged = 0
        run += 1
        writer = startWriter()
        while (acknowledged === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      }
      const before = acknowledged
      const copy = path.join(
        folder,
        ['backup.sqlite.zst', 'backup.sqlite.gz', 'backup.sqlite'][index % 3] ?? '',
      )
      const maintenance = await openMaintenance({ kind: 'sqlite', file })
      await maintenance.backup(copy, Date.now()).finally(() => maintenance.close())
      const restored = path.join(folder, 'restored.sqlite')
      const { faults: broken } = await restoreStore(
        { kind: 'sqlite', file: restored },
        { from: copy, force: false, now: Date.now(), withoutJournal: true },
      )
      const database = new Database(restored, { readonly: true })
      const found = new Set(database.prepare('SELECT id FROM subscription').pluck().all())
      database.close()
      for (let number = 1; number <= before; number += 1)
        if (!found.has(`r${run}-${number}`))
          faults.push(`backup ${index + 1} lacks row ${number} of ${before}`)
      faults.push(...broken.map((fault) => `backup ${index + 1}: ${fault}`))
      await rm(copy)
      await rm(restored)
      onBackup?.(index + 1, faults.length)
    }
  } finally {
    await stopWriter()
  }
  return { backups, rows: acknowledged, faults }

  function startWriter() {
    const child = execa(process.execPath, [WRITER, file, `r${run}-`], { reject: false, buffer: false })
    const ended = (async () => {
      for await (const line of child.iterable()) acknowledged = Number(line)
      return child
    })()
    return { child, ended }
  }

  async function stopWriter(): Promise<void> {
    writer.child.kill('SIGKILL')
    await writer.ended
  }
}
