import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { SignedSnapshot } from '../core/witness.ts'
import { NOTHING_SEEN, type Voting } from './votes.ts'

/** What a witness keeps over a restart. */
interface Kept {
  readonly signed?: SignedSnapshot | undefined
  /** When the platform last said that the snapshot is current; UTC milliseconds. */
  readonly confirmedAt: number
  readonly voting: Voting
}

/** The state in a folder. A file that cannot be read counts as none, and is replaced. */
export function openState(folder: string): { readonly kept: Kept; keep(kept: Kept): void } {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = path.join(folder, 'witness.json')
  return {
    kept: read(file),
    keep(kept) {
      writeFileSync(`${file}.new`, JSON.stringify(kept), { mode: 0o600 })
      renameSync(`${file}.new`, file)
    },
  }
}

function read(file: string): Kept {
  try {
    return {
      confirmedAt: 0,
      voting: NOTHING_SEEN,
      ...(JSON.parse(readFileSync(file, 'utf8')) as Partial<Kept>),
    }
  } catch {
    return { confirmedAt: 0, voting: NOTHING_SEEN }
  }
}
