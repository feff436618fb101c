import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { createTransport } from 'nodemailer'
import { mimeOf } from '../src/core/mail/transports/mime.ts'
import { secret } from '../src/core/secret.ts'
import { openStore } from '../src/core/store/open.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { bareSmtp } from './bare-smtp.ts'
import { courseMailerOver } from './course.ts'
import { dueRowsPostgres, lessonMail, rate, rateOnSqlite } from './due-lessons.ts'
import type { Benchmark } from './harness.ts'
import { perSecond, startSink } from './sink.ts'

const LESSONS = 5_000
const CONNECTIONS = 20

export const benchmark: Benchmark = {
  name: 'drip-smtp',
  title: 'The whole drip job over SMTP, 5,000 lessons, 20 connections',
  unit: 'lessons/s',
  better: 'higher',
  promises: [],
  notes:
    'Ours claims, rechecks, fills the template, sends and durably records each lesson (SQLite, synchronous FULL). A connection completes no message before its last one is recorded, so that a kill repeats at most one for each; so does the bare client with marks, the upper bound for such a sender. The others send finished bytes and remember nothing.',
  async open(opened) {
    const sink = await startSink('./smtp-sink.ts')
    opened.defer(async () => sink.close())
    const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
    opened.defer(() => rm(folder, { recursive: true, force: true }))
    const mailer = courseMailerOver({ kind: 'smtp', url: secret(`smtp://127.0.0.1:${sink.port}`) })
    opened.defer(() => mailer.close())
    const postgres = await startPostgres()
    opened.defer(() => postgres.stop())
    const message = await mailer.compose(lessonMail())
    const bytes = mimeOf(message)
    const envelope = { from: message.from.address, to: message.to.address }
    const lines = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => bareSmtp(sink.port, envelope.from, envelope.to)),
    )
    opened.defer(async () => {
      for (const line of lines) line.close()
    })
    const pool = createTransport({
      pool: true,
      host: '127.0.0.1',
      port: sink.port,
      maxConnections: CONNECTIONS,
      maxMessages: Number.POSITIVE_INFINITY,
    })
    opened.defer(async () => pool.close())

    let run = 0
    return {
      contenders: [
        {
          name: 'platformctl on SQLite',
          role: 'ours',
          measure: () => {
            run += 1
            return rateOnSqlite(LESSONS, path.join(folder, `drip-${run}.sqlite`), mailer)
          },
        },
        {
          name: 'a bare client that pipelines, a durable mark for each message before its connection’s next',
          role: 'floor',
          measure: () => {
            run += 1
            return marked(path.join(folder, `marks-${run}.sqlite`), (line) =>
              lines[line]?.send(Buffer.from(bytes)),
            )
          },
        },
        {
          name: 'a bare client that pipelines',
          role: 'floor',
          measure: () => {
            const free = [...lines]
            return perSecond(LESSONS, CONNECTIONS, async () => {
              const line = free.pop()
              await line?.send(Buffer.from(bytes))
              if (line) free.push(line)
            })
          },
        },
        {
          name: 'nodemailer, pooled, prebuilt bytes',
          role: 'peer',
          measure: () => perSecond(LESSONS, CONNECTIONS, () => pool.sendMail({ envelope, raw: bytes })),
        },
        {
          name: 'platformctl on PostgreSQL',
          role: 'peer',
          measure: async () => {
            const url = await postgres.createDatabase()
            const store = await openStore({ kind: 'postgres', url: secret(url) })
            await postgres.query(url, dueRowsPostgres(LESSONS))
            return rate(LESSONS, store, mailer)
          },
        },
      ],
    }
  },
}

/** Every connection sends one message, and all their marks share a commit, again and again. */
async function marked(file: string, send: (line: number) => Promise<void> | undefined): Promise<number> {
  const database = new Database(file)
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(`CREATE TABLE lesson (id INTEGER PRIMARY KEY, sent INTEGER NOT NULL DEFAULT 0);
    INSERT INTO lesson (id) WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${LESSONS}) SELECT n FROM n`)
  const update = database.prepare('UPDATE lesson SET sent = 1 WHERE id = ?')
  const commit = database.transaction((from: number) => {
    for (let line = 1; line <= CONNECTIONS; line += 1) update.run(from + line)
  })
  const began = performance.now()
  for (let sent = 0; sent < LESSONS; sent += CONNECTIONS) {
    await Promise.all(Array.from({ length: CONNECTIONS }, (_, line) => send(line)))
    commit(sent)
  }
  const speed = (LESSONS / (performance.now() - began)) * 1000
  database.close()
  return speed
}
