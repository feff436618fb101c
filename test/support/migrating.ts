import { connect, migrate } from '../../src/core/store/sqlite/connection.ts'
import { MIGRATIONS } from '../../src/core/store/sqlite/migrations.ts'

/** A migration that kills its own process before the statement of the given number. */
const [file, at] = process.argv.slice(2)
if (file === undefined) throw new Error('usage: migrating FILE NUMBER')
let seen = 0
const steps = MIGRATIONS.map((sql) =>
  sql
    .split(';')
    .map((statement) => {
      if (statement.trim() === '') return statement
      seen += 1
      return seen === Number(at) ? `SELECT die();${statement}` : statement
    })
    .join(';'),
)
const database = connect({ file })
database.function('die', () => {
  process.kill(process.pid, 'SIGKILL')
  return 0
})
migrate(database, file, steps)
database.close()
