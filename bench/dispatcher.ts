import { systemClock } from '../src/core/clock.ts'
import { openCourse } from '../src/core/course/open.ts'
import { silentLog } from '../src/core/log.ts'
import { openMailer } from '../src/core/mail/open.ts'
import { systemRandom } from '../src/core/random.ts'
import { secret } from '../src/core/secret.ts'
import { openStore } from '../src/core/store/open.ts'

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
const mailer = openMailer({
  mail: {
    key: secret('provider-key'),
    route: { kind: 'api', url: api },
    from: { name: 'Quantum Course', address: 'course@example.com' },
    replyTo: undefined,
  },
})
const course = openCourse({
  store: store.course,
  persistent: store.persistent,
  mailer,
  clock: systemClock,
  random: systemRandom,
  log: silentLog,
  siteUrl: 'https://www.example.com',
  linkKey: secret('a key of thirty-two characters….'),
})

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
