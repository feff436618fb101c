import { secret } from '../src/core/secret.ts'
import { openStore } from '../src/core/store/open.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { openDispatchers } from './dispatchers.ts'
import type { Benchmark, Contender } from './harness.ts'
import { startSink } from './sink.ts'

const LESSONS = 20_000

const dueRows = `
  TRUNCATE platformctl.subscription CASCADE;
  INSERT INTO platformctl.subscription (id, identity, address, state, enrolment, created_at, confirmed_at, next_attempt_at)
  SELECT 'person-' || n, 'p' || n || '@example.com', 'p' || n || '@example.com', 'confirmed', 1, 0, now, now
  FROM generate_series(1, ${LESSONS}) AS n, (SELECT (extract(epoch FROM now()) * 1000)::bigint AS now) AS clock;
  ANALYZE platformctl.subscription`

export const benchmark: Benchmark = {
  name: 'postgres-dispatchers',
  title: 'Dispatchers draining 20,000 lessons from one PostgreSQL',
  unit: 'lessons/s',
  better: 'higher',
  promises: [],
  ratiosOf: 'the others',
  notes:
    'Each dispatcher is a running process with four connections to PostgreSQL and fifty to a mail API. All of them share this machine’s cores, so more dispatchers help only on more machines.',
  async open() {
    const sink = await startSink('./drip-sink.ts')
    const server = await startPostgres(['max_connections=200'])
    const url = await server.createDatabase()
    await (await openStore({ kind: 'postgres', url: secret(url) })).close()
    const dispatchers = await openDispatchers({
      count: 16,
      store: url,
      api: `http://127.0.0.1:${sink.port}/emails`,
    })
    const contender = (count: number, name: string, role: Contender['role']): Contender => ({
      name,
      role,
      measure: async () => {
        await server.query(url, dueRows)
        const seconds = await dispatchers.drain({ count, lessons: LESSONS })
        return LESSONS / seconds
      },
    })
    return {
      contenders: [
        contender(1, 'one dispatcher', 'ours'),
        contender(4, 'four dispatchers', 'peer'),
        contender(16, 'sixteen dispatchers', 'peer'),
      ],
      close: async () => {
        await dispatchers.close()
        sink.close()
        await server.stop()
      },
    }
  },
}
