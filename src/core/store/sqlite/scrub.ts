import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import type { Erased } from '../../course/store.ts'
import type { SqliteDatabase } from './connection.ts'

/**
 * Takes erased text out of the file: empties the log, and where a page still holds a copy (SQLite moves rows within
 * pages, and an earlier build did not overwrite what it deleted) rewrites the file. True: no byte of it is left.
 */
export function scrubFile(
  database: SqliteDatabase,
  file: string | undefined,
  texts: readonly string[],
): Erased['bytesGone'] {
  if (file === undefined) return true
  const emptied = () => {
    const [result] = database.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
    return result?.busy === 0
  }
  const gone = () => ![file, `${file}-wal`].some((one) => holds(one, texts))
  emptied()
  if (gone()) return true
  try {
    database.exec('VACUUM')
    // A file that was rewritten holds what is in the store and nothing else.
    return emptied()
  } catch {
    // Another process holds the file.
    return false
  }
}

const CHUNK = 1024 * 1024

function holds(file: string, texts: readonly string[]): boolean {
  if (!existsSync(file)) return false
  const wanted = texts.map((text) => Buffer.from(text))
  const overlap = Math.max(...wanted.map(({ length }) => length))
  const buffer = Buffer.alloc(CHUNK + overlap)
  const descriptor = openSync(file, 'r')
  try {
    let kept = 0
    for (let position = 0; ; ) {
      const count = readSync(descriptor, buffer, kept, CHUNK, position)
      if (count === 0) return false
      const filled = buffer.subarray(0, kept + count)
      if (wanted.some((one) => filled.includes(one))) return true
      kept = Math.min(overlap, filled.length)
      filled.copyWithin(0, filled.length - kept)
      position += count
    }
  } finally {
    closeSync(descriptor)
  }
}
