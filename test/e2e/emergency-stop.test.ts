import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { JWT_SECRET, token } from '../support/accounts.ts'
import { startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { command } from '../support/in-process.ts'
import { addressOf, KEPT } from '../support/stores.ts'

const DISPATCH = 'a-dispatch-secret-of-thirty-two-b'
const REASON = 'wrong prices in all mails'

/** A daemon over a store, its inbox, and what an operator and a visitor can do. */
async function platform(kind: 'sqlite' | 'postgres') {
  const cwd = await emptyFolder()
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const address = await addressOf(kind)
  const env = {
    ...(address?.kind === 'postgres' && { STORE_URL: address.url.reveal() }),
    MAILER_API_KEY: 'local-mail-key-without-any-meaning',
    MAILER_SMTP_URL: inbox.smtpUrl,
    MAILER_FROM: 'Course <course@example.com>',
    EMAIL_DISPATCH_SECRET: DISPATCH,
    NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com',
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-datastore',
    DATASTORE_JWT_SECRET: JWT_SECRET,
  }
  const start = async () => {
    const daemon = await startDaemon(['--data', 'data', '--service', 'web', '--no-schedule'], { cwd, env })
    onTestFinished(async () => void (await daemon.stop('SIGKILL')))
    return daemon
  }
  let daemon = await start()
  const run = (...args: string[]) => command([...args, '--data', 'data'], { cwd, env })
  const post = async (route: string, body: unknown, bearer?: string) => {
    const headers = {
      'Content-Type': 'application/json',
      ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
    }
    const answer = await fetch(`${daemon.urls.web}${route}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    return (await answer.json()) as Record<string, unknown>
  }
  const exp = Math.floor(Date.now() / 1000) + 600
  return {
    run,
    inbox,
    json: async (...args: string[]) => JSON.parse((await run(...args, '--format', 'json')).stdout),
    subscribe: (email: string) => post('/api/email/subscribe', { email }),
    dispatch: () => post('/api/email/dispatch', {}, DISPATCH),
    welcome: async (sub: string) =>
      post('/api/email', { template: 'welcome' }, await token({ sub, email: `${sub}@example.com`, exp })),
    text: async (route: string) => (await fetch(`${daemon.urls.web}${route}`)).text(),
    async restart() {
      await daemon.stop()
      daemon = await start()
    },
  }
}

test('an operator stops all mail of a running daemon by one command, and lets it go on by another', async () => {
  // Both at once: most of it is waiting for what the daemon last asked its store.
  await Promise.all(
    KEPT.map(async (kind) => {
      const it = await platform(kind)
      expect((await it.run('course', 'enrol', 'ada@example.com')).exitCode).toBe(0)
      expect(await it.run('mail', 'pause', '--stream', 'corse', '--reason', REASON)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining("unknown stream 'corse'. Did you mean course?"),
      })
      expect((await it.run('mail', 'pause')).exitCode).toBe(2)
      expect((await it.run('mail', 'resume')).exitCode).toBe(1)
      expect(await it.welcome('grace')).toMatchObject({ sent: true })
      await expect.poll(() => it.inbox.mails.some(({ to }) => to === 'grace@example.com')).toBe(true)

      const named = { at: expect.any(Number), reason: REASON }
      const streams = ['sign-in', 'confirmation', 'notice', 'course', 'mail']
      const paused = { version: 1, paused: streams.map((stream) => ({ stream, ...named })) }
      expect(await it.json('mail', 'pause', '--reason', REASON)).toEqual(paused)
      expect(await it.json('mail', 'pause', '--reason', REASON)).toEqual(paused)
      await expect.poll(() => it.text('/api/health')).toContain(`mail is paused (${streams.join(', ')})`)
      // What the daemon asked before the pause is a few seconds old at most. Mail is stored meanwhile, and waits.
      const queued = { sent: true, queued: true, id: expect.any(String) }
      let last = 'grace'
      const waits = async () => {
        const isHeld = !it.inbox.mails.some(({ to }) => to === `${last}@example.com`)
        last = randomUUID()
        await it.welcome(last)
        return isHeld
      }
      await expect.poll(waits, { timeout: 10_000, interval: 1000 }).toBe(true)
      expect(await it.welcome('alan')).toEqual(queued)
      const before = it.inbox.mails.length
      expect(await it.subscribe('bob@example.com')).toEqual({ status: 'pending', sent: true })
      expect(await it.dispatch()).toMatchObject({ processed: 0, sent: 0, remaining: 1, reason: 'paused' })
      const queue: readonly { readonly stream: string }[] = (await it.json('mail', 'queue')).streams
      expect(queue.map(({ stream }) => stream)).toEqual([
        ...['sign-in', 'confirmation', 'alert', 'notice', 'course', 'mail'],
      ])
      for (const stream of ['confirmation', 'course'])
        expect(queue.find((one) => one.stream === stream)).toMatchObject({
          ...{ due: 1, held: 1, waiting: 0, failed: 0 },
          paused: named,
        })
      expect(JSON.parse(await it.text('/api/health'))).toMatchObject({
        probes: { mail: { state: 'degraded', reason: `mail is paused (${streams.join(', ')})` } },
      })
      expect(await it.text('/metrics')).toMatch(/^platformctl_mail_paused\{stream="course"\} 1$/m)
      expect((await it.run('status')).stdout).toMatch(new RegExp(`^paused {5}sign-in.*${REASON}`, 'm'))

      expect((await it.json('status')).store.lastMail.sentAt).toBeGreaterThan(Date.now() - 5 * 60_000)
      await it.restart()
      expect(await it.dispatch()).toMatchObject({ sent: 0, reason: 'paused' })
      expect(await it.welcome('linus')).toEqual(queued)
      expect(it.inbox.mails).toHaveLength(before)

      expect((await it.run('course', 'resume')).exitCode).toBe(0)
      expect(await it.dispatch()).toMatchObject({ sent: 1 })
      const resumed = await it.run('mail', 'resume')
      expect(resumed).toMatchObject({
        exitCode: 0,
        stdout: expect.stringMatching(/^resumed: sign-in, .*wrong/),
      })
      expect((await it.run('mail', 'resume')).exitCode).toBe(1)
      await expect
        .poll(
          async () => {
            await it.dispatch()
            const people = ['bob', 'alan', 'linus'].map((name) => `${name}@example.com`)
            return people.every((one) => it.inbox.mails.some(({ to }) => to === one))
          },
          { timeout: 10_000, interval: 500 },
        )
        .toBe(true)
      expect(await it.welcome('linus')).toMatchObject({ sent: true })
      const { entries } = await it.json('db', 'audit')
      expect(entries.map(({ action }: { action: string }) => action)).toEqual([
        ...['resume', 'resume', 'pause', 'enrol'],
      ])
    }),
  )
}, 60_000)
