import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { sameShape, stepsOf } from '../../scripts/runbooks/session.ts'
import { DAY_MS } from '../../src/core/durations.ts'
import { openStore } from '../../src/core/store/open.ts'
import { platformctl, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { begin } from '../support/learning.ts'
import { postgresServer } from '../support/stores.ts'
import { apiSink } from '../torture/sinks.ts'

const SECRET = 'a-dispatch-secret-of-enough-length'
const PEOPLE = 20

/** Subscribers in the middle of their course, and one who has not used the link yet. */
async function fill(file: string): Promise<void> {
  const { course, close } = await openStore({ kind: 'sqlite', file })
  const confirmed = Date.now() - 8 * DAY_MS
  for (let n = 0; n < PEOPLE; n += 1) {
    const [id, address] = [`person-${n}`, `p${n}@example.com`]
    await course.requestConfirmation({
      course: 'quantum',
      identity: address,
      address,
      id,
      tokenHash: id,
      now: confirmed,
    })
    await course.confirm({ begin, tokenHash: id, now: confirmed })
  }
  await close()
}

const PAGE = new URL('../../runbooks/moving-day.md', import.meta.url)

/** The commands of a section of the runbook, run where its folder, its address and its file are those of this test. */
async function followRunbook(section: string, cwd: string, places: Readonly<Record<string, string>>) {
  const page = readFileSync(PAGE, 'utf8')
  const start = page.indexOf(`\n## ${section}\n`)
  expect(start, section).toBeGreaterThan(0)
  const end = page.indexOf('\n## ', start + 1)
  const here = (text: string) =>
    Object.entries(places).reduce((found, [shown, real]) => found.replaceAll(shown, real), text)
  const there = (text: string) =>
    Object.entries(places).reduce((found, [shown, real]) => found.replaceAll(real, shown), text)
  for (const { command, output, exitCode } of stepsOf(page.slice(start, end))) {
    const [program, ...args] = here(command).split(' ')
    if (program === 'mv') {
      await rename(args[0] ?? '', args[1] ?? '')
      continue
    }
    expect(program).toBe('platformctl')
    const done = await platformctl(args, { cwd })
    const written = there(`${done.stdout}\n${done.stderr}`.trim()).split('\n')
    expect({ command, exitCode: done.exitCode, written }).toMatchObject({ exitCode })
    if (!sameShape(output, written)) expect(written, command).toEqual(output)
  }
}

test('on moving day to PostgreSQL, done by its runbook, live subscribers get every lesson once, links that are out go on working, and the way back repeats none', {
  timeout: 60_000,
}, async () => {
  const cwd = await emptyFolder()
  const sink = await apiSink()
  onTestFinished(() => sink.close())
  const links = new Map<string, string>()
  sink.onMessage = (to, text) => {
    for (const [target, route] of text.matchAll(/\/api\/email\/(confirm|unsubscribe)\?\S+/g))
      links.set(`${route} ${to}`, target)
  }
  const env = {
    ...sink.env,
    EMAIL_DISPATCH_SECRET: SECRET,
    NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
  }
  await fill(path.join(cwd, 'platform.sqlite'))
  const open = async (more: Record<string, string> = {}) => {
    const args = ['--service', 'web', '--no-schedule', '--data', cwd]
    const daemon = await startDaemon(args, { cwd, env: { ...env, ...more } })
    onTestFinished(async () => void (await daemon.stop('SIGKILL')))
    const post = (target: string, init: RequestInit = {}) =>
      fetch(`${daemon.urls.web}${target}`, { method: 'POST', ...init })
    const dispatch = async () => {
      const answer = await post('/api/email/dispatch', { headers: { authorization: `Bearer ${SECRET}` } })
      return (await answer.json()) as { sent: number; remaining: number }
    }
    return { daemon, post, dispatch }
  }

  const before = await open()
  expect(await before.dispatch()).toMatchObject({ sent: PEOPLE })
  await before.post('/api/email/subscribe', {
    headers: { 'Content-Type': 'application/json' },
    body: '{"email":"late@example.com"}',
  })
  await expect.poll(() => links.get('confirm late@example.com')).toBeDefined()
  expect(await before.daemon.stop()).toBe(0)

  const url = await (await postgresServer()).createDatabase()
  const places = {
    'postgres://platform@db.example.com/platform': url,
    '/var/lib/platformctl': cwd,
    '/etc/platformctl/env': path.join(cwd, 'production.env'),
  }
  await writeFile(places['/etc/platformctl/env'], `STORE_URL=${url}\n`)
  await followRunbook('Do', cwd, places)

  const after = await open({ STORE_URL: url })
  await after.post(links.get('unsubscribe p0@example.com') ?? '')
  const confirmed = await after.post(links.get('confirm late@example.com') ?? '')
  expect(confirmed.status).toBeLessThan(400)
  while ((await after.dispatch()).remaining > 0);
  const lessons = Map.groupBy(sink.deliveries, ({ to }) => to)
  for (let n = 1; n < PEOPLE; n += 1)
    expect(new Set(lessons.get(`p${n}@example.com`)?.map(({ key }) => key)).size).toBe(7)
  expect(lessons.get('p0@example.com')).toHaveLength(1)
  expect(lessons.get('late@example.com')).toHaveLength(2)
  expect(sink.faults).toEqual([])
  await followRunbook('How to know that it worked', cwd, places)

  const delivered = sink.deliveries.length
  expect(await after.daemon.stop()).toBe(0)
  await followRunbook('How to go back', cwd, places)
  const returned = await open()
  expect(await returned.dispatch()).toMatchObject({ sent: 0, remaining: 0 })
  expect(sink.deliveries).toHaveLength(delivered)
  const verified = await platformctl(['db', 'verify', '--data', cwd], { cwd })
  expect(verified.stdout).toMatch(/the file is sound, and 21 subscriptions/)
})
