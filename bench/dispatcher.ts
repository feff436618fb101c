import { secret } from '../src/core/secret.ts'
import { openStore } from '../src/core/store/open.ts'
import { courseMailer, courseOver } from './course.ts'

/**
 * One dispatcher in a process of its own, over the SQLite file or the PostgreSQL that its first argument names, to the
 * mail API at its second. Says when it is open, and drains when it is told to, by calls of a thousand like `dispatch --drain`.
 */
const [storeAddress = '', api = ''] = process.argv.slice(2)
const store = await openStore(
  storeAddress.startsWith('postgres:')
    ? { kind: 'postgres', url: secret(storeAddress) }
    : { kind: 'sqlite', file: storeAddress },
  { poolSize: 4 },
)
const course = courseOver(store, courseMailer(api))

process.on('message', async () => {
  let sent = 0
  for (;;) {
    const call = await course.dispatch({ limit: 1000 })
    sent += call.sent
    if (call.processed === 0) break
  }
  process.send?.({ sent })
})
process.on('disconnect', () => process.exit())
process.send?.('open')
