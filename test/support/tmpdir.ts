import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const MEMORY = '/dev/shm'
const room = existsSync(MEMORY) ? statfsSync(MEMORY) : undefined

/**
 * Where temporary files of tests go: into memory where there is ample room, because a store waits for the disk at every
 * commit, and a disk takes ten times as long to copy the hundreds of files of a PostgreSQL database.
 */
export const TMPDIR = room && room.bavail * room.bsize > 5e9 ? MEMORY : tmpdir()
