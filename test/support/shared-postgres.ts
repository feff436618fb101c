import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { type PostgresServer, startPostgres } from './postgres.ts'
import { TMPDIR } from './tmpdir.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Answers with the port of the run's PostgreSQL. */
    sharedPostgres: string
  }
}

/** One PostgreSQL for a whole run: started when the first test asks for its port, stopped with the run. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let postgres: Promise<PostgresServer> | undefined
  const starter = createServer((_, response) => {
    // Another process may take its port meanwhile.
    postgres ??= start().catch(start)
    postgres.then(
      ({ port }) => response.end(String(port)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => starter.listen(0, '127.0.0.1', resolve))
  // It listens on a port: not a pipe.
  project.provide('sharedPostgres', `http://127.0.0.1:${(starter.address() as AddressInfo).port}`)
  return async () => {
    starter.close()
    starter.closeAllConnections()
    await (await postgres?.catch(() => undefined))?.stop()
  }
}

async function start(): Promise<PostgresServer> {
  // Nothing here outlives the machine, several workers connect at once, and most databases live for a second.
  const unsafe = ['fsync=off', 'full_page_writes=off', 'autovacuum=off', 'max_wal_size=4GB']
  return startPostgres(['max_connections=300', 'timezone=Australia/Lord_Howe', ...unsafe], TMPDIR)
}
