import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { DAY_MS } from '../../src/core/durations.ts'
import { SQLITE_STEPS } from '../../src/core/store/migrations.ts'
import { openStore } from '../../src/core/store/open.ts'
import { connect } from '../../src/core/store/sqlite/connection.ts'
import { migrateFile } from '../../src/core/store/sqlite/sql.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'
import { run } from '../support/run.ts'
import { serve } from '../support/servers.ts'
import { asked } from '../support/subscribers.ts'

async function terminal(cwd?: string, platform = learning, signal = new AbortController().signal) {
  cwd ??= await emptyFolder()
  await (await openStore({ kind: 'sqlite', file: path.join(cwd, 'platform.sqlite') })).close()
  const parts = { cwd, platform, signal, operator: () => ({ name: 'ops', place: 'box-1' }) }
  return async (...args: string[]) => {
    const { code, stdout, stderr } = await run([...args, '--data', '.'], parts)
    return { code, out: stdout, err: stderr }
  }
}

test('an operator begins, lists and ends a course of a person, and the audit log has both', async () => {
  const folder = await emptyFolder()
  const run = await terminal(folder)
  expect(await run('course', 'resend-confirmation', 'ada@example.com')).toMatchObject({
    code: 1,
    err: expect.stringContaining('waits for its confirmation'),
  })
  const enrol = ['course', 'enrol', 'ada@example.com', '--key', 'order-1', '--format', 'json']
  const first = await run(...enrol)
  expect(first).toMatchObject({ code: 0 })
  expect(JSON.parse(first.out)).toMatchObject({ version: 1, enrolled: true, enrolment: 1 })
  expect((await run(...enrol)).out).toBe(first.out)
  expect(await run('course', 'enrol', 'ada@example.com')).toMatchObject({
    code: 1,
    err: expect.stringContaining('this address is in that course already'),
  })
  expect(await run('course', 'list')).toMatchObject({
    code: 0,
    out: 'quantum  7 lessons  every 1 d  1 confirmed\n',
  })
  const renamed = await terminal(folder, { ...learning, courses: [] })
  expect(await renamed('course', 'list')).toMatchObject({
    code: 0,
    out: 'quantum  not in the definition    1 under way\n',
  })
  expect(JSON.parse((await renamed('course', 'list', '--format', 'json')).out)).toEqual({
    ...{ version: 1, courses: [], removed: [{ course: 'quantum', people: 1 }] },
  })
  expect((await run('course', 'list', 'ada@example.com')).out).toMatch(
    /^quantum {2}confirmed {2}0 of 7 sent {2}next /,
  )
  for (const [words, code, err] of [
    ['erase ada@example.com', 2, 'add --yes to confirm'],
    ['resume', 1, 'courses are not paused'],
  ] as const)
    expect(await run('course', ...words.split(' '))).toMatchObject({
      code,
      err: expect.stringContaining(err),
    })
  expect((await run('course', 'cancel', 'ada@example.com')).out).toBe(
    'cancelled; no further lesson of this course is sent\n',
  )
  expect((await run('course', 'cancel', 'ada@example.com')).out).toBe('there was nothing to cancel\n')
  const key = ['--key', 'order-1']
  expect((await run('course', 'enrol', 'ada@example.com', ...key)).out).toMatch(/; no lesson is planned$/m)
  expect((await run('course', 'enrol', 'eve@example.com')).out).toMatch(/; the next lesson is due 20\S+Z$/m)
  expect(await run('course', 'enrol', 'ada@example.com')).toMatchObject({
    code: 1,
    err: expect.stringContaining('only they can begin it again'),
  })
  const other = await terminal(folder, {
    ...learning,
    courses: learning.courses.map((course) => ({ ...course, id: 'glazing' })),
  })
  await run('course', 'enrol', 'bob@example.com')
  const ended = await other('course', 'cancel', 'bob@example.com', '--course', 'quantum')
  expect(ended).toMatchObject({ code: 0, out: 'cancelled; no further lesson of this course is sent\n' })
  expect(
    await other('course', 'set', 'bob@example.com', '--course', 'glazing', '--language', 'de'),
  ).toMatchObject({
    code: 1,
    err: expect.stringContaining('no subscription in the course glazing has this address'),
  })
  const erase = ['course', 'erase', 'ada@example.com', '--yes']
  expect((await run(...erase)).out).toBe('erased; no course will mail the address again\n')
  expect((await run(...erase)).out).toBe('there was nothing to erase; no course will mail the address\n')
  const database = new Database(path.join(folder, 'platform.sqlite'))
  database.exec("INSERT INTO login_request VALUES ('login', 'Ada@example.com', '/login?t=1', 1)")
  database.close()
  const more = 'erased, with 1 other record about it; no course will mail the address again\n'
  expect((await run(...erase)).out).toBe(more)
  expect(await run('course', 'enrol', 'ada@example.com')).toMatchObject({
    code: 1,
    err: expect.stringContaining('was erased and is not mailed again'),
  })
  for (const [word, out] of [
    ['add', 'no course mails it'],
    ['remove', 'it can be mailed again; it was erased, so no course mails it'],
  ] as const)
    expect(await run('email', 'suppressions', word, 'ada@example.com', '--reason', 'asked')).toMatchObject({
      out: expect.stringContaining(out),
    })
  const audit = JSON.parse((await run('db', 'audit', '--format', 'json')).out) as {
    entries: { action: string; who: string }[]
  }
  expect(audit.entries.map(({ action }) => action)).toEqual(expect.arrayContaining(['cancel', 'enrol']))
})

test('a confirmation that is mailed again is said to be sent once it is, and not if it is refused', async () => {
  const cwd = await emptyFolder()
  const store = await openStore({ kind: 'sqlite', file: path.join(cwd, 'platform.sqlite') })
  for (const name of ['ada', 'bob']) await store.course.requestConfirmation(asked(name))
  await store.close()
  let status = 503
  const url = await serve((_, response) => response.writeHead(status).end('{"id":"provider-1"}'))
  const env = { MAILER_API_KEY: 'key', MAILER_API_URL: url, MAILER_FROM: 'course@example.com' }
  const again = (name: string) =>
    run(['course', 'resend-confirmation', `${name}@example.com`, '--data', '.'], { cwd, env })
  expect(await again('ada')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('not sent: the mail provider cannot take the message now (503).'),
  })
  status = 200
  expect(await again('bob')).toMatchObject({
    code: 0,
    stdout: 'a confirmation with a new link was sent\n',
  })
})

test('a command says that it brings the store of an older build to its own schema, once', async () => {
  const cwd = await emptyFolder()
  const file = path.join(cwd, 'platform.sqlite')
  const database = connect({ file })
  await migrateFile(database, file, SQLITE_STEPS.slice(0, -1))
  // A build that knew several courses had shut out those before it.
  database.exec(`UPDATE meta SET value = '1:14' WHERE name = 'readable_from'`)
  database.close()
  const status = () => run(['course', 'status', '--data', '.'], { cwd })
  const latest = SQLITE_STEPS.length
  const brought = `brought from schema ${latest - 1} to ${latest}; if a daemon of an older build runs`
  expect(await status()).toMatchObject({ code: 0, stderr: expect.stringContaining(brought) })
  expect(await status()).toMatchObject({ code: 0, stderr: '' })
  const migrated = new Database(file)
  const readable = migrated.prepare(`SELECT value FROM meta WHERE name = 'readable_from'`)
  expect(readable.pluck().get()).toBe(`${latest}:14`)
  migrated.close()
})

test('after a fault of the sender an operator tries all that waits for a decision again, with one command', async () => {
  const cwd = await emptyFolder()
  const run = await terminal(cwd)
  for (const name of ['ada', 'grace']) await run('course', 'enrol', `${name}@example.com`)
  const database = new Database(path.join(cwd, 'platform.sqlite'))
  database.exec(
    "UPDATE subscription SET problem_kind = 'parked', problem_reason = 'sender refused', problem_since = 1, next_attempt_at = NULL",
  )
  await run('mail', 'pause', '--stream', 'course', '--reason', 'wrong links')
  const queued = (await run('mail', 'queue')).out
  expect(queued).toMatch(/^course +0 +0 +0 +2 .* paused since \S+: wrong links$/m)
  expect(await run('mail', 'resume', '--stream', 'mail')).toMatchObject({
    code: 1,
    err: expect.stringContaining('not paused: mail'),
  })
  // Enough of the address to find it at the provider, in either form.
  for (const format of ['text', 'json']) {
    const { out } = await run('course', 'status', '--format', format)
    expect(out).toContain('a…@example.com')
    expect(out).toContain('wrong links')
    expect(out).not.toMatch(/ada@|grace@/)
  }
  // What waits for a decision is not over.
  expect((await run('course', 'export')).out.match(/,(?:confirmed|finished),/g)).toEqual(
    Array(2).fill(',confirmed,'),
  )
  expect(await run('course', 'resolve', '--all')).toMatchObject({ code: 2 })
  for (const all of [[], ['--all']]) {
    const { out } = await run('course', 'resolve', ...all, '--reason', 'full', 'retry')
    expect(out).toContain('0 deliveries')
  }
  expect(await run('course', 'resolve', '--all', 'retry')).toMatchObject({
    code: 0,
    out: expect.stringContaining('2 deliveries'),
  })
  expect((await run('db', 'audit')).out.match(/ ops +box-1 +resolve /g)).toHaveLength(2)
  const left = database.prepare('SELECT problem_kind, next_attempt_at IS NULL AS never FROM subscription')
  expect(left.all()).toEqual([
    { problem_kind: null, never: 0 },
    { problem_kind: null, never: 0 },
  ])
  const { id } = database.prepare('SELECT id FROM subscription').get() as { id: string }
  database.close()
  expect((await run('course', 'resolve', '--all', 'retry')).out).toContain('0 deliveries')
  const sent = { code: 0, out: 'recorded as sent; any next lesson follows in its turn\n' }
  expect(await run('course', 'resolve', id, 'sent')).toMatchObject(sent)
  expect((await run('course', 'show', id)).out).toMatch(/^days sent +1$/m)
  expect(await run('course', 'resolve', id, 'sent')).toMatchObject({
    code: 1,
    err: expect.stringContaining(`no delivery of ${id} waits for a decision`),
  })
})

test.each([
  [['course', 'enrol', 'nobody'], /^.*email: /],
  [['course', 'enrol', 'ada@example.com', '--time-zone', 'Mars/Olympus'], /timeZone: not an IANA time zone/],
  [['course', 'enrol', 'ada@example.com', '--language', 'German!'], /language: not a language tag/],
  [
    ['course', 'set', 'ada@example.com', '--language', 'de_DE'],
    /language: not a language tag, as de or pt-BR/,
  ],
  [['course', 'set', 'ada@example.com', '--time-zone', '+01:00'], /not an IANA time zone, as Europe.Berlin/],
  [['course', 'set', 'ada@example.com'], /say what to set: --language TAG, --time-zone ZONE/],
  [['course', 'set', 'ada@', '--language', 'de'], /the part after the @ is not a domain name/],
  [['course', 'set', 'ada@example.com', '--language', 'de', '--course', 'quantun'], /Did you mean quantum/],
  [
    ['course', 'enrol', 'ada@example.com', '--course', 'quantun'],
    /unknown course 'quantun'\. Did you mean quantum/,
  ],
  [
    ['course', 'cancel', 'ada@example.com', '--course', 'quantun'],
    /unknown course 'quantun'\. Did you mean quantum/,
  ],
] as const)('%j is wrong usage', async (args, message) => {
  const run = await terminal()
  expect(await run(...args)).toMatchObject({ code: 2, err: expect.stringMatching(message) })
})

test('an operator changes the language and time zone of a person, by address or by id', async () => {
  const run = await terminal()
  const set = ['course', 'set', 'Ada@Example.com', '--language', 'de']
  expect(await run(...set)).toMatchObject({
    code: 1,
    err: expect.stringContaining('no subscription has this address'),
  })
  await run('course', 'enrol', 'ada@example.com', '--language', 'fr', '--time-zone', 'Asia/Tokyo')
  const shown = async () =>
    JSON.parse((await run('course', 'show', 'ada@example.com', '--format', 'json')).out)
  expect(await shown()).toMatchObject({ language: 'fr', timeZone: 'Asia/Tokyo' })
  expect((await run(...set)).out).toBe('set for 1 course, from the next mail on\n')
  const { id } = await shown()
  const zone = await run('course', 'set', id, '--time-zone', 'Europe/Vienna', '--format', 'json')
  expect(JSON.parse(zone.out)).toEqual({ version: 1, enrolments: 1 })
  expect(await shown()).toMatchObject({ language: 'de', timeZone: 'Europe/Vienna' })
  expect((await run('course', 'show', id)).out).toMatch(/set language de\n.*set time zone Europe\/Vienna\n/)
  expect((await run('db', 'audit')).out).toMatch(/set.*Europe\/Vienna/)
  await run('course', 'set', id, '--language', 'it', '--time-zone', 'Europe/Rome')
  expect(await shown()).toMatchObject({ language: 'it', timeZone: 'Europe/Rome' })
})

test('an operator imports people with proof of consent, sees the lines of those left out, and exports the rest', async () => {
  const cwd = await emptyFolder()
  const run = await terminal(cwd)
  const write = (text: string) => writeFile(path.join(cwd, 'people.csv'), text)
  const head = 'address,course,language,time_zone,sent,consent_at,consent_how,note\n'
  await write(`${head}ada@example.com,quantum,de,Europe/Vienna,2,,form\nbob@,,,,,2026-01-02,form\n`)
  const refused = await run('course', 'import', 'people.csv')
  expect(refused).toMatchObject({ code: 2, out: '' })
  expect(refused.err).toMatch(
    /^line 2: proof of consent.*\nline 3: the part.*\nplatformctl: nobody was imported from people.csv/,
  )
  await run('course', 'enrol', 'eve@example.com')
  await run('course', 'cancel', 'eve@example.com')
  await run('course', 'erase', 'kim@example.com', '--yes')
  await run('email', 'suppressions', 'add', 'lee@example.com', '--reason', 'asked')
  const rows = ['ada', 'eve', 'kim', 'lee', 'ada'].map(
    (name) => `${name}@example.com,quantum,de,Europe/Vienna,2,2026-01-02,"form, at the fair",x\n`,
  )
  await write(head + rows.join(''))
  const report = [
    'line 3: unsubscribed from this course; only they can begin it again',
    'line 4: erased, and not mailed again',
    'line 5: on the suppression list',
    'line 6: the same address and course as in an earlier one',
  ].map((line) => `${line}\n`)
  const dry = await run('course', 'import', 'people.csv', '--dry-run')
  expect(dry.out).toBe(
    `${report.join('')}1 would be imported, 0 in the course already, 4 left out; nothing was changed\n`,
  )
  expect(dry.err).toContain('ignored in people.csv: note')
  expect(await run('course', 'import', 'people.csv')).toMatchObject({
    code: 0,
    out: `${report.join('')}1 imported, 0 in the course already, 4 left out\n`,
  })
  // Of another platform, or renamed: they count as sent, and no lesson of this course does.
  await write('address,sent,sent_lessons,consent_at,consent_how\nmoe@example.com,1,day-1,2026-01-02,form\n')
  const strange = await run('course', 'import', 'people.csv', '--dry-run')
  expect(strange).toMatchObject({ code: 0, out: expect.stringContaining('1 would be imported') })
  expect(strange.err).toContain(
    'the course quantum has no lesson day-1: who had it gets all others. Its lessons are course-day-1, course-day-2',
  )
  await write(head + rows.join(''))
  const again = await run('course', 'import', 'people.csv', '--format', 'json')
  expect(JSON.parse(again.out)).toMatchObject({ version: 1, dryRun: false, imported: 0, known: 1 })
  expect((await run('course', 'list', 'ada@example.com')).out).toMatch(/^quantum {2}confirmed {2}2 of 7 sent/)
  expect((await run('course', 'show', 'Ada@Example.com')).out).toMatch(
    /consent +2026-01-02T.*, form, at the fair/,
  )
  const shown = await run('course', 'show', 'ada@example.com', '--format', 'json')
  expect(JSON.parse(shown.out)).toMatchObject({
    ...{ language: 'de', timeZone: 'Europe/Vienna', sentDays: [1, 2], consent: { how: 'form, at the fair' } },
    history: [{ kind: 'confirmed', source: 'import' }],
  })
  const csv = (await run('course', 'export')).out
  expect(csv).toMatch(
    /^address,course,state,language,time_zone,sent,lessons,sent_lessons,last_sent_at,next_at,consent_at,consent_how,subscription\r\n/,
  )
  expect(csv).toMatch(
    /^ada@example.com,quantum,confirmed,de,Europe\/Vienna,2,7,course-day-1 course-day-2,,.*,2026-01-02T00:00:00.000Z,"form, at the fair",[\w-]{8,}\.1\r$/m,
  )
  await write(csv)
  expect((await run('course', 'import', 'people.csv')).err).toContain('only with the EMAIL_LINK_SECRET')
  const json = await run('course', 'export', '--course', 'quantum', '--format', 'json')
  expect(JSON.parse(json.out)).toMatchObject({ version: 1, enrolments: [{}, {}] })
  expect(await run('course', 'export', '--course', 'quantun')).toMatchObject({ code: 2, out: '' })
  // Those of mails about incidents.
  expect((await run('course', 'export', '--course', 'status')).out).toMatch(/^address,.*\r\n$/)
  const none = await run('course', 'export', '--course', 'status', '--format', 'json')
  expect(JSON.parse(none.out)).toMatchObject({ enrolments: [] })
  expect((await run('db', 'audit')).out).toMatch(/import.*4 people from people.csv/)
  const ended = await terminal(cwd, learning, AbortSignal.abort())
  const many = Array.from({ length: 300 }, (_, n) => `p${n}@example.com,quantum,,,0,2026-01-02,form,\n`)
  await write(head + many.join(''))
  expect(await ended('course', 'import', 'people.csv')).toMatchObject({
    code: 1,
    err: expect.stringContaining('interrupted after 200 of 300 people. Run the command again to go on'),
  })
  expect((await run('course', 'import', 'people.csv')).out).toMatch(/^100 imported, 200 in the course/m)
  const database = new Database(path.join(cwd, 'platform.sqlite'))
  database.exec(`CREATE TRIGGER full BEFORE INSERT ON subscription WHEN NEW.address = 'q250@example.com'
    BEGIN SELECT RAISE(ABORT, 'full'); END`)
  await write(head + many.join('').replaceAll(/^p/gm, 'q'))
  const broken = await run('course', 'import', 'people.csv')
  expect(broken.code).not.toBe(0)
  expect(broken.err).toContain('interrupted after 200 of 300 people. Run the command again to go on')
  database.exec('DROP TRIGGER full')
  database.close()
  await write(head + many.join('').replaceAll(/^p/gm, 'r'))
  expect((await run('course', 'import', 'people.csv')).out).toMatch(/^300 imported/)
  // It is written in pages of 500.
  const all = JSON.parse((await run('course', 'export', '--format', 'json')).out)
  expect(new Set(all.enrolments.map((one: { address: string }) => one.address)).size).toBe(802)
  // One for each import that changed something, however many people there are.
  expect((await run('db', 'audit')).out.match(/ import .*/g)).toHaveLength(5)
  expect(await ended('course', 'export')).toMatchObject({
    code: 1,
    err: expect.stringContaining('the export was interrupted'),
  })
})

test('somebody imported is shown as confirmed when they agreed, and never later than the import', async () => {
  const cwd = await emptyFolder()
  const run = await terminal(cwd)
  const ahead = (ms: number) => new Date(Date.now() + ms).toISOString()
  const rows = [`ada@example.com,${ahead(2 * DAY_MS)},1,2026-01-02`, `bob@example.com,,,${ahead(DAY_MS / 2)}`]
  const head = 'address,next_at,sent,consent_at,consent_how'
  await writeFile(path.join(cwd, 'people.csv'), [head, ...rows.map((row) => `${row},form`)].join('\n'))
  expect(await run('course', 'import', 'people.csv')).toMatchObject({ code: 0 })
  const { out } = await run('course', 'show', 'ada@example.com')
  expect(out).toMatch(/^confirmed +2026-01-02T00:00/m)
  expect(out).toContain('imported, enrolment 1, with consent')
  const bob = JSON.parse((await run('course', 'show', 'bob@example.com', '--format', 'json')).out)
  expect(bob.confirmedAt).toBeLessThanOrEqual(Date.now())
  expect(await run('db', 'verify')).toMatchObject({ code: 0 })
})

test('course show tells of every course that a person is in, and of one by its id', async () => {
  const [quantum] = learning.courses
  if (quantum === undefined) throw new Error('the default platform has a course')
  const run = await terminal(undefined, { ...learning, courses: [quantum, { ...quantum, id: 'optics' }] })
  for (const course of ['quantum', 'optics'])
    await run('course', 'enrol', 'ada@example.com', '--course', course)
  await run('course', 'cancel', 'ada@example.com', '--course', 'optics')
  const show = await run('course', 'show', 'ada@example.com')
  expect(show.out.match(/^course .*$/gm)).toEqual(['course        quantum', 'course        optics'])
  expect(show.out.match(/^id .*$/gm)).toHaveLength(2)
  expect(show.out.match(/^\S+Z {2}unsubscribed/gm)).toHaveLength(1)
  const { course, enrolments } = JSON.parse(
    (await run('course', 'show', 'ada@example.com', '--format', 'json')).out,
  )
  expect(course).toBe('quantum')
  expect(enrolments.map((one: { course: string }) => one.course)).toEqual(['quantum', 'optics'])
  // Each with its own history.
  const ends = enrolments.map((one: { history: { kind: string }[] }) => one.history.at(-1)?.kind)
  expect([ends[0] === 'unsubscribed', ends[1]]).toEqual([false, 'unsubscribed'])
  const one = await run('course', 'show', enrolments[1].id)
  expect(one.out.match(/^course .*$/gm)).toEqual(['course        optics'])
})
