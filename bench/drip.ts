import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { Pool } from 'undici'
import { createSemaphore } from '../src/core/calls.ts'
import { joinPieces } from '../src/core/mail/encoding.ts'
import type { Mailer } from '../src/core/mail/mailer.ts'
import { jsonPiecesOf } from '../src/core/mail/transports/forms.ts'
import { secret } from '../src/core/secret.ts'
import { openStore } from '../src/core/store/open.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { courseMailer } from './course.ts'
import { dueRowsPostgres, lessonMail, rate, rateOnSqlite } from './due-lessons.ts'
import type { Contender } from './harness.ts'
import { peer } from './peers.ts'
import { startRedis } from './redis.ts'
import { perSecond, startSink } from './sink.ts'

const CONCURRENCY = 50
const PATH = '/emails'
/** Concurrent sends in the loop with grouped commits, the same number as ours. */
const SLOTS = 250
const GROUP_MS = 6

/**
 * The whole drip job: so many lessons that are due go to a mail API in another process, 50 at once, each recorded as
 * done. Peers are given the same bytes to post, by the same client; what they must enqueue first is part of their time.
 */
export async function dripContenders(input: {
  readonly lessons: number
  readonly sinkDelayMs: number
}): Promise<{ contenders: Contender[]; close: () => Promise<void> }> {
  const { lessons, sinkDelayMs } = input
  const closers: (() => unknown)[] = []
  const sink = await startSink('./drip-sink.ts', [String(sinkDelayMs)])
  closers.push(() => sink.close())
  const origin = `http://127.0.0.1:${sink.port}`
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
  closers.push(() => rm(folder, { recursive: true, force: true }))
  const mailer = courseMailer(`${origin}${PATH}`)
  closers.push(() => mailer.close())

  const body = await lessonBody(mailer)
  const pool = new Pool(origin, { connections: CONCURRENCY, pipelining: 1 })
  closers.push(() => pool.close())
  /** Copies the body for each mail, as different mails would need. A single buffer would stay in the CPU cache. */
  const postCopy = (key: string) => post(key, Buffer.from(body))
  const post = async (key: string, bytes = body) => {
    const answer = await pool.request({
      path: PATH,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer provider-key',
        'idempotency-key': key,
      },
      body: bytes,
    })
    await answer.body.text()
  }

  const redis = await startRedis()
  closers.push(() => redis.stop())
  const postgres = await startPostgres()
  closers.push(() => postgres.stop())

  let run = 0
  const contenders: Contender[] = [
    {
      name: 'platformctl on SQLite',
      role: 'ours',
      measure: () => {
        run += 1
        return rateOnSqlite(lessons, path.join(folder, `drip-${run}.sqlite`), mailer)
      },
    },
    {
      name: 'a loop that only posts',
      role: 'floor',
      measure: () => perSecond(lessons, CONCURRENCY, () => post('the-same')),
    },
    {
      name: 'a loop that posts a copy for each',
      role: 'floor',
      measure: () => perSecond(lessons, CONCURRENCY, () => postCopy('the-same')),
    },
    {
      name: 'that loop with grouped durable marks',
      role: 'floor',
      measure: () => {
        run += 1
        return marking(path.join(folder, `marks-${run}.sqlite`), lessons, postCopy)
      },
    },
    {
      name: 'platformctl on PostgreSQL',
      role: 'peer',
      measure: async () => {
        const url = await postgres.createDatabase()
        const store = await openStore({ kind: 'postgres', url: secret(url) })
        await postgres.query(url, dueRowsPostgres(lessons))
        return rate(lessons, store, mailer)
      },
    },
    { name: 'BullMQ on Redis', role: 'peer', measure: () => bullmq(redis.port, lessons, post) },
    {
      name: 'graphile-worker, batched',
      role: 'peer',
      measure: async () => graphile(await postgres.createDatabase(), lessons, post, true),
    },
    {
      name: 'graphile-worker',
      role: 'peer',
      measure: async () => graphile(await postgres.createDatabase(), lessons, post, false),
    },
    {
      name: 'pg-boss, fetched in batches',
      role: 'peer',
      measure: async () => pgBoss(await postgres.createDatabase(), lessons, post, true),
    },
    {
      name: 'pg-boss, work()',
      role: 'peer',
      measure: async () => pgBoss(await postgres.createDatabase(), lessons, post, false),
    },
  ]
  return {
    contenders,
    close: async () => {
      for (const close of closers.reverse()) await close()
    },
  }
}

/** The cost of durability alone: no claim, lease, check before the send or template; sets one column by row number. */
async function marking(file: string, lessons: number, post: Post): Promise<number> {
  const database = new Database(file)
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(`CREATE TABLE lesson (id INTEGER PRIMARY KEY, sent INTEGER NOT NULL DEFAULT 0);
    INSERT INTO lesson (id) WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${lessons}) SELECT n FROM n`)
  const update = database.prepare('UPDATE lesson SET sent = 1 WHERE id = ?')
  const commit = database.transaction((ids: readonly number[]) => {
    for (const id of ids) update.run(id)
  })
  let group: number[] = []
  let flush: Promise<void> | undefined
  const mark = (id: number) => {
    group.push(id)
    flush ??= sleep(GROUP_MS).then(() => {
      const ids = group
      group = []
      flush = undefined
      commit(ids)
    })
    return flush
  }
  const inFlight = createSemaphore(CONCURRENCY)
  let next = 0
  const speed = await perSecond(lessons, SLOTS, async () => {
    next += 1
    const id = next
    await inFlight(() => post(`lesson-${id}`))
    await mark(id)
  })
  const { sent } = database.prepare('SELECT sum(sent) AS sent FROM lesson').get() as { sent: number }
  database.close()
  if (sent !== lessons) throw new Error(`${sent} of ${lessons} were marked`)
  return speed
}

async function lessonBody(mailer: Mailer): Promise<Buffer> {
  return joinPieces(jsonPiecesOf(await mailer.compose(lessonMail())))
}

type Post = (key: string) => Promise<void>

/** As its documentation has it: jobs added in bulk, one worker, its concurrency the same as everyone's. */
async function bullmq(port: number, lessons: number, post: Post): Promise<number> {
  const { Queue, Worker } = peer<{
    Queue: new (
      name: string,
      options: object,
    ) => {
      addBulk(jobs: object[]): Promise<unknown>
      obliterate(options: object): Promise<void>
      close(): Promise<void>
    }
    Worker: new (
      name: string,
      work: (job: { data: { key: string } }) => Promise<void>,
      options: object,
    ) => {
      on(event: 'completed', listener: () => void): void
      close(): Promise<void>
      waitUntilReady(): Promise<unknown>
    }
  }>('bullmq')
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null }
  const queue = new Queue('lessons', { connection })
  await queue.obliterate({ force: true })
  const began = performance.now()
  await queue.addBulk(
    Array.from({ length: lessons }, (_, n) => ({
      name: 'lesson',
      data: { key: `person-${n}` },
      opts: { jobId: `person-${n}-${began}`, removeOnComplete: true, attempts: 12 },
    })),
  )
  const worker = new Worker('lessons', (job) => post(job.data.key), { connection, concurrency: CONCURRENCY })
  let done = 0
  await new Promise<void>((resolve) =>
    worker.on('completed', () => {
      done += 1
      if (done === lessons) resolve()
    }),
  )
  const seconds = (performance.now() - began) / 1000
  await worker.close()
  await queue.close()
  return lessons / seconds
}

/** Batched as its page on performance has it (local queue, completions gathered); ordinary as its quick start has it. */
async function graphile(url: string, lessons: number, post: Post, batched: boolean): Promise<number> {
  const { run, makeWorkerUtils, Logger } = peer<{
    Logger: new (factory: () => () => void) => object
    run(options: object): Promise<{ stop(): Promise<void> }>
    makeWorkerUtils(options: object): Promise<{
      migrate(): Promise<void>
      addJobs(jobs: object[]): Promise<unknown>
      release(): Promise<void>
    }>
  }>('graphile-worker')
  const logger = new Logger(() => () => {})
  const utils = await makeWorkerUtils({ connectionString: url, logger })
  await utils.migrate()
  const began = performance.now()
  await utils.addJobs(
    Array.from({ length: lessons }, (_, n) => ({ identifier: 'lesson', payload: { key: `person-${n}` } })),
  )
  let done = 0
  const all = Promise.withResolvers<void>()
  const runner = await run({
    connectionString: url,
    concurrency: CONCURRENCY,
    maxPoolSize: 20,
    noHandleSignals: true,
    logger,
    preset: {
      worker: {
        concurrentJobs: CONCURRENCY,
        maxPoolSize: 20,
        logger,
        ...(batched && { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
      },
    },
    taskList: {
      lesson: async (payload: { key: string }) => {
        await post(payload.key)
        done += 1
        if (done === lessons) all.resolve()
      },
    },
  })
  await all.promise
  // It records outcomes in batches, so all are recorded only once it has stopped.
  await runner.stop()
  const seconds = (performance.now() - began) / 1000
  await utils.release()
  return lessons / seconds
}

async function pgBoss(url: string, lessons: number, post: Post, batched: boolean): Promise<number> {
  type Job = { id: string; data: { key: string } }
  const { PgBoss } = peer<{
    PgBoss: new (
      options: object,
    ) => {
      on(event: 'error', listener: () => void): void
      start(): Promise<unknown>
      createQueue(name: string): Promise<void>
      insert(name: string, jobs: object[]): Promise<unknown>
      fetch(name: string, options: object): Promise<Job[]>
      complete(name: string, ids: string[]): Promise<unknown>
      work(name: string, options: object, work: (jobs: Job[]) => Promise<void>): Promise<string>
      stop(options: object): Promise<void>
    }
  }>('pg-boss')
  const boss = new PgBoss({ connectionString: url, max: 20, supervise: false, schedule: false })
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue('lessons')
  const began = performance.now()
  await boss.insert(
    'lessons',
    Array.from({ length: lessons }, (_, n) => ({ data: { key: `person-${n}` } })),
  )
  let done = 0
  if (batched) {
    const slot = async () => {
      for (;;) {
        const jobs = await boss.fetch('lessons', { batchSize: 250 })
        if (jobs.length === 0) return
        await Promise.all(jobs.map((job) => post(job.data.key)))
        await boss.complete(
          'lessons',
          jobs.map(({ id }) => id),
        )
        done += jobs.length
      }
    }
    await Promise.all([slot(), slot(), slot(), slot()])
  } else {
    const all = Promise.withResolvers<void>()
    for (let n = 0; n < CONCURRENCY; n += 1)
      await boss.work('lessons', { batchSize: 10, pollingIntervalSeconds: 0.5 }, async (jobs) => {
        await Promise.all(jobs.map((job) => post(job.data.key)))
        done += jobs.length
        if (done >= lessons) all.resolve()
      })
    await all.promise
  }
  const seconds = (performance.now() - began) / 1000
  await boss.stop({ graceful: false })
  if (done < lessons) throw new Error(`${done} of ${lessons} were done`)
  return lessons / seconds
}
