import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { backupsUnderLoad } from '../test/support/backups-under-load.ts'
import { optionsOf, wholeNumber } from './options.ts'
import { progressOn } from './progress.ts'

const USAGE = `node scripts/backups-under-load.ts [1000]
  Makes and restores so many backups while another process writes.`
const { positionals } = optionsOf(USAGE, { options: {}, allowPositionals: true })
const wanted = wholeNumber(USAGE, 'their count', positionals[0] ?? '1000', 1)
const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-backups-'))
const progress = progressOn()
try {
  const { backups, faults } = await backupsUnderLoad(folder, wanted, (done, broken) =>
    progress.tell(`${done} of ${wanted} backups, ${broken} faults`),
  )
  progress.end()
  for (const fault of faults) console.log(fault)
  console.log(`${backups} backups under write load, ${faults.length} faults`)
  process.exitCode = faults.length === 0 ? 0 : 1
} finally {
  await rm(folder, { recursive: true, force: true })
}
