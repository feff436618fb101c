import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { openHistory, openStore } from '../src/core/store/open.ts'
import { recordLearningDays } from '../test/support/sample-health.ts'
import type { Benchmark } from './harness.ts'
import { wholeProcess } from './process.ts'

const INCIDENTS = 365
const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))
const SAME_BYTES = 'the same reads and writes'

/** Reads what the status page is made of, and writes the files of an earlier export. */
const SOURCE = `import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import Database from ${JSON.stringify(import.meta.resolve('better-sqlite3'))}
const [file, from, to] = process.argv.slice(1)
const database = new Database(file)
for (const table of ['series', 'period', 'incident', 'build']) database.prepare('SELECT * FROM health_' + table).all()
mkdirSync(to + '/incidents', { recursive: true })
for (const { name, parentPath } of readdirSync(from, { recursive: true, withFileTypes: true }).filter((one) => one.isFile()))
  writeFileSync(to + parentPath.slice(from.length) + '/' + name, readFileSync(parentPath + '/' + name))`

export const benchmark: Benchmark = {
  name: 'status-export',
  title: `status export with ${INCIDENTS} incidents`,
  unit: 'ms',
  better: 'lower',
  promises: [{ against: SAME_BYTES, ratio: 5 }],
  rounds: 10,
  notes:
    'Whole processes. The record has 80 days of two dozen probes, with an incident every five hours; the newest 50 have a page each. The floor reads the tables with better-sqlite3, makes nothing of them, and copies the files of an earlier export.',
  async open(opened) {
    const folder = opened.adopt(await mkdtemp(path.join(tmpdir(), 'platformctl-bench-')), (made) =>
      rm(made, { recursive: true }),
    )
    await (await openStore({ kind: 'sqlite', file: path.join(folder, 'platform.sqlite') })).close()
    const file = path.join(folder, 'history.sqlite')
    const history = await openHistory(file)
    await recordLearningDays(history, Date.now())
    await history.close()
    const database = new Database(file)
    database.exec(incidents(Date.now()))
    database.close()
    const exporting = (out: string) =>
      wholeProcess({ args: [bin, 'status', 'export', path.join(folder, out), '--data', folder] })
    await exporting('earlier')
    const copying = () =>
      wholeProcess({
        args: [
          ...['--input-type=module', '-e', SOURCE],
          ...[file, path.join(folder, 'earlier'), path.join(folder, 'copied')],
        ],
      })
    return {
      contenders: [
        { name: 'platformctl status export', role: 'ours', measure: () => exporting('exported') },
        { name: SAME_BYTES, role: 'floor', measure: copying },
      ],
    }
  },
}

/** SQL: an incident every five hours, each an hour long. */
function incidents(now: number): string {
  return `INSERT OR IGNORE INTO health_incident (service, probe, state, reason, began_at, seen_at, ended_at)
    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${INCIDENTS})
    SELECT 'web', CASE n % 2 WHEN 0 THEN 'mail' ELSE 'payments' END, 'failing', 'the check failed',
      ${now} - n * 19000000, ${now} - n * 19000000 + 3600000, ${now} - n * 19000000 + 3600000 FROM n`
}
