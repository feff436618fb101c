import Database from 'better-sqlite3'
import type { Mail, Mailer } from '../src/core/mail/mailer.ts'
import { openStore } from '../src/core/store/open.ts'
import type { Store } from '../src/core/store/store.ts'
import { courseOver } from './course.ts'

const NOW = Date.now()
/** SQL that adds subscribers to an SQLite store, each with its first lesson due. */
const dueRows = (lessons: number, table: string) =>
  `INSERT INTO ${table} (id, identity, address, state, enrolment, created_at, confirmed_at, next_attempt_at)
   WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${lessons})
   SELECT 'person-' || n, 'p' || n || '@example.com', 'p' || n || '@example.com', 'confirmed', 1, 0, ${NOW}, ${NOW} FROM n`
/** The same for PostgreSQL. */
export const dueRowsPostgres = (lessons: number) =>
  `INSERT INTO platformctl.subscription (id, identity, address, state, enrolment, created_at, confirmed_at, next_attempt_at)
   SELECT 'person-' || n, 'p' || n || '@example.com', 'p' || n || '@example.com', 'confirmed', 1, 0, ${NOW}, ${NOW}
   FROM generate_series(1, ${lessons}) AS n`

/** Opens an SQLite store of its own in `file`, in which that many lessons are due. */
export async function openDue(lessons: number, file: string): Promise<Store> {
  await (await openStore({ kind: 'sqlite', file })).close()
  const database = new Database(file)
  database.exec(dueRows(lessons, 'subscription'))
  database.close()
  return openStore({ kind: 'sqlite', file })
}

/** Dispatches that many from an SQLite store of its own in `file`: lessons a second. */
export async function rateOnSqlite(lessons: number, file: string, mailer: Mailer): Promise<number> {
  return rate(lessons, await openDue(lessons, file), mailer)
}

/** Dispatches them all, closes the store, and gives lessons a second. */
export async function rate(lessons: number, store: Store, mailer: Mailer): Promise<number> {
  const course = courseOver(store, mailer)
  const began = performance.now()
  const { sent } = await course.dispatch({ limit: lessons })
  const seconds = (performance.now() - began) / 1000
  await store.close()
  if (sent !== lessons) throw new Error(`${sent} of ${lessons} were sent`)
  return lessons / seconds
}

/** One of the lessons that are due. */
export function lessonMail(): Mail {
  const url =
    'https://www.example.com/api/email/unsubscribe?s=person-1.1&t=0123456789abcdefghijklmnopqrstuvwxyzABCDEF_'
  return {
    template: 'course-day-1',
    slots: { lessonUrl: 'https://www.example.com/lessons/1', unsubscribeUrl: url },
    to: { name: undefined, address: 'p1@example.com' },
    about: 'course.person-1.1.1',
    date: new Date(NOW),
    unsubscribeUrl: url,
  }
}
