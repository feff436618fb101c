import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { FIRST_COURSE } from '../src/core/course/definition.ts'
import type { CourseOptions } from '../src/core/course/open.ts'
import { HOUR_MS } from '../src/core/durations.ts'
import { silentLog, systemClock, systemRandom } from '../src/core/host.ts'
import { createAlertLanes, mailChannel } from '../src/core/incidents/channels.ts'
import { noticeSlots } from '../src/daemon/open/course.ts'
import { learning } from '../src/presets/learning/platform.ts'
import { outageText } from '../src/witness/outages.ts'
import { change, incidentWith } from '../test/support/incidents.ts'
import { courseMailer, courseOver } from './course.ts'
import { openDue, rateOnSqlite } from './due-lessons.ts'
import type { Benchmark } from './harness.ts'
import { startSink } from './sink.ts'

const LESSONS = 5000
/** Mails that are due in each of the other streams. */
const OTHERS = 10
const ALONE = 'lessons alone'
const IDLE = 'idle streams'
const NOTICES_OF: NonNullable<CourseOptions['notices']> = {
  isSilent: async () => false,
  slots: (notice, language) => noticeSlots(learning, 'https://www.example.com', notice, language),
}
const HOST = { clock: systemClock, timer: systemClock, random: systemRandom, log: silentLog }

export const benchmark: Benchmark = {
  name: 'drip-streams',
  title: 'The drip job while five other streams send',
  unit: 'lessons/s',
  better: 'higher',
  promises: [
    { against: ALONE, ratio: 0.7 },
    { against: IDLE, ratio: 0.7 },
  ],
  rounds: 20,
  notes: `${LESSONS.toLocaleString('en')} lessons, 50 at once, SQLite; a sign-in mail, a confirmation, an alert, a notice and another mail are due ${OTHERS} times each, and leave beside the lessons. Such mail is recorded one by one. The time is that of the lessons.`,
  async open(opened) {
    const sink = opened.adopt(await startSink('./drip-sink.ts'), (one) => one.close())
    const folder = opened.adopt(await mkdtemp(path.join(tmpdir(), 'platformctl-bench-')), (made) =>
      rm(made, { recursive: true }),
    )
    const mailer = opened.adopt(courseMailer(`http://127.0.0.1:${sink.port}/emails`), (one) => one.close())
    let run = 0
    const nextFile = () => {
      run += 1
      return path.join(folder, `drip-${run}.sqlite`)
    }
    const channel = mailChannel(
      () => ({ send: mailer.send, close: async () => {} }),
      {
        to: { name: undefined, address: 'ops@example.com' },
        lines: mailer.lines,
        patienceMs: mailer.patienceMs,
      },
      (incident, kind) => outageText(incident, kind, 'www.example.com'),
    )

    /** Lessons a second from a store where `others` mails are due in each other stream. */
    async function rateBeside(others: number): Promise<number> {
      const file = nextFile()
      const store = await openDue(LESSONS, file)
      const now = Date.now()
      const opens = Array.from({ length: others }, (_, n) =>
        incidentWith({ id: `incident-${n}`, cause: `cause-${n}`, openedAt: now }),
      )
      await change(store.incidents, now, { opens }, [channel])
      const database = new Database(file)
      database.exec(mailsDue(others, now))
      if (others > 0)
        await store.incidents.announce(
          { id: 'a1', text: 'We move', from: now, until: undefined, by: 'ops' },
          now,
        )
      const course = courseOver(store, mailer, { again: async () => undefined, notices: NOTICES_OF })
      const began = performance.now()
      const alerts = createAlertLanes(HOST, store.incidents, [channel]).map((wake) => wake())
      const { sent } = await course.dispatch({ limit: LESSONS })
      const seconds = (performance.now() - began) / 1000
      const alerted = (await Promise.all(alerts)).reduce((sum, one) => sum + one, 0)
      await course.close()
      const left = database.prepare('SELECT count(*) FROM message').pluck().get()
      database.close()
      await store.close()
      if (sent !== LESSONS || alerted !== others || left !== 0)
        throw new Error(`${sent} lessons and ${alerted} alerts were sent, ${left} other mails were not`)
      return LESSONS / seconds
    }
    return {
      contenders: [
        { name: 'all streams at work', role: 'ours', measure: () => rateBeside(OTHERS) },
        { name: IDLE, role: 'floor', measure: () => rateBeside(0) },
        { name: ALONE, role: 'floor', measure: () => rateOnSqlite(LESSONS, nextFile(), mailer) },
      ],
    }
  },
}

/** SQL that adds this many subscribers of notices, and as many confirmations, sign-in mails and mails of a program, all of them due. */
function mailsDue(others: number, now: number): string {
  const numbers = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${others})`
  const subscriber = (state: string, course: string) => `
    INSERT INTO subscription (id, identity, address, person, state, enrolment, created_at, confirmed_at, course) ${numbers}
    SELECT '${course}-' || n, '${course}' || n || '@example.com', '${course}' || n || '@example.com',
      '${course}' || n || '@example.com', '${state}', 1, ${now}, ${state === 'confirmed' ? now : 'NULL'}, '${course}'
    FROM n WHERE n <= ${others};`
  const message = (stream: string, payload: string, subscription = 'NULL') => `
    INSERT INTO message (id, stream, key, subscription, address, payload, created_at, expires_at, next_attempt_at) ${numbers}
    SELECT '${stream}.' || n, '${stream}', '${stream}.' || n, ${subscription}, 'reader@example.com', ${payload}, ${now}, ${now + HOUR_MS}, ${now}
    FROM n WHERE n <= ${others};`
  const mail = (stream: string) =>
    message(
      stream,
      `json_object('template', 'welcome', 'about', '${stream}.' || n, 'slots', json_object('startUrl', 'https://www.example.com/'))`,
    )
  const confirmation = message('confirmation', `'{"course":"${FIRST_COURSE}"}'`, `'${FIRST_COURSE}-' || n`)
  return (
    subscriber('confirmed', 'status') +
    subscriber('unconfirmed', FIRST_COURSE) +
    confirmation +
    mail('sign-in') +
    mail('mail')
  )
}
