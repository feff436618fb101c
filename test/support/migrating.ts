import { flushCompileCache } from 'node:module'
import { statementsOf } from '../../src/core/store/maintenance.ts'
import { SQLITE_STEPS } from '../../src/core/store/migrations.ts'
import { connect } from '../../src/core/store/sqlite/connection.ts'
import { migrateFile } from '../../src/core/store/sqlite/sql.ts'

/**
 * Runs a migration that kills its own process before the statement with the given number. The first step runs on its
 * own before the others, because a new file would get all steps at once.
 */
const [file, at] = process.argv.slice(2)
if (file === undefined) throw new Error('usage: migrating FILE NUMBER')
let seen = 0
const steps = SQLITE_STEPS.map((sql) =>
  statementsOf(sql)
    .map((statement) => {
      seen += 1
      return seen === Number(at) ? `SELECT die();${statement}` : statement
    })
    .join(';\n'),
)
const database = connect({ file })
database.function('die', () => {
  process.kill(process.pid, 'SIGKILL')
  return 0
})
// A killed process leaves no cache to the next one.
flushCompileCache()
await migrateFile(database, file, steps.slice(0, 1))
await migrateFile(database, file, steps)
database.close()
