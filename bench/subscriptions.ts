import path from 'node:path'
import Database from 'better-sqlite3'
import { openStore } from '../src/core/store/open.ts'

/**
 * A store of so many confirmed subscriptions, of which `due` wait for their first lesson since the time 1 and the others
 * far in the future; gives its file. Set-based, because a million sign-ups are not what is measured.
 */
export async function subscriptionsFile(input: {
  readonly folder: string
  readonly subscriptions: number
  readonly due: number
  /** Courses that they are spread over, ten or more, everybody in ten of them; left out, all are in that of the default platform. */
  readonly courses?: number
}): Promise<string> {
  const { folder, subscriptions, due, courses } = input
  const file = path.join(folder, `${subscriptions}-${due}-${courses ?? 1}.sqlite`)
  await (await openStore({ kind: 'sqlite', file })).close()
  const database = new Database(file)
  database.exec('PRAGMA synchronous = OFF')
  database.exec(rows(subscriptions, due, courses))
  database.pragma('wal_checkpoint(TRUNCATE)')
  database.close()
  return file
}

/** Puts so many due lessons in the place of whatever is there, while others have the file open. */
export function replaceByDue(file: string, due: number): void {
  const database = new Database(file)
  database.exec(`BEGIN IMMEDIATE; DELETE FROM subscription; ${rows(due, due)}; COMMIT`)
  database.close()
}

const rows = (subscriptions: number, due: number, courses?: number) => {
  const columns = 'id, state, enrolment, created_at, confirmed_at, next_attempt_at, identity, address'
  const values = `printf('%010d', n), 'confirmed', 1, 0, ${Date.now()},
    CASE WHEN n % ${Math.floor(subscriptions / due)} = 0 THEN 0 ELSE 4000000000000 + n END`
  const one = `INSERT INTO subscription (${columns}) ${numbers(subscriptions)}
    SELECT ${values}, n || '@example.com', n || '@example.com' FROM n`
  if (courses === undefined) return one
  // As the store writes enrolments in other courses than the first that there was; those that are due are in all of them.
  const [person, course] = ["(n / 10) || '@example.com'", `'course-' || (1 + (n + n / 1000) % ${courses})`]
  return `INSERT INTO subscription (${columns}, person, course, course_version, lessons, due_at, time_zone, language)
    ${numbers(subscriptions)}
    SELECT ${values}, ${person} || ' ' || ${course}, ${person}, ${person}, ${course}, 'abcdefghijklmnopqrstuv', 12, ${Date.now()},
      'Europe/Berlin', 'de' FROM n`
}

const numbers = (most: number) =>
  `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${most})`
