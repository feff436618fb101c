import type { Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { CourseStore } from '../../../src/core/course/store.ts'
import { LINES } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { secret } from '../../../src/core/secret.ts'
import { courseWith } from '../../support/course.ts'
import { compiledMails } from '../../support/learning.ts'
import { rudeSmtp } from '../../support/rude-smtp.ts'

const PEOPLE = 3 * LINES.smtp

/** A dispatcher over SMTP whose commits wait until the test lets them happen. */
async function dispatcherWithHeldCommits(
  extensions: string,
  { people = PEOPLE, refuseFirst = false }: { readonly people?: number; readonly refuseFirst?: boolean } = {},
) {
  const it = await courseWith(people)
  /** The connection whose first message is refused; the others are answered when its second one has come. */
  let refusing: Socket | undefined
  const unanswered: Socket[] = []
  let slow = refuseFirst
  const durable = new Set<string>()
  const held: (() => void)[] = []
  let holding = true
  const accepted: { readonly to: string; readonly socket: Socket }[] = []
  /** Accepted on a connection whose message before was not durable yet: a kill would repeat both. */
  const unbounded: string[] = []
  const recipient = new Map<Socket, string>()
  const last = new Map<Socket, string>()
  const server = await rudeSmtp((word, socket, line) => {
    if (word === 'EHLO') return extensions
    if (word === 'RCPT') recipient.set(socket, /<(.*)>/.exec(line)?.[1] ?? '')
    if (word === 'END' && refuseFirst && refusing === undefined) {
      refusing = socket
      return '554 5.7.1 policy'
    }
    if (word === 'END') {
      const before = last.get(socket)
      if (before !== undefined && !durable.has(before)) unbounded.push(before)
      const to = recipient.get(socket) ?? ''
      last.set(socket, to)
      accepted.push({ to, socket })
      if (slow && socket !== refusing) {
        unanswered.push(socket)
        return null
      }
      slow = false
      for (const other of unanswered.splice(0)) other.write('250 2.0.0 ok\r\n')
    }
    return undefined
  })
  const mailer = openMailer({
    compiled: compiledMails,
    mail: {
      key: secret('key'),
      route: { kind: 'smtp', url: secret(`smtp://127.0.0.1:${server.port}`) },
      from: { name: undefined, address: 'course@example.com' },
      replyTo: undefined,
    },
  })
  onTestFinished(() => mailer.close())
  const store: CourseStore = {
    ...it.store.course,
    async settle(settlements) {
      if (holding) await new Promise<void>((resolve) => held.push(resolve))
      await it.store.course.settle(settlements)
      for (const { claim } of settlements) durable.add(claim.address)
    },
  }
  return {
    course: it.open(store, { more: { mailer } }),
    server,
    accepted,
    unbounded,
    release: () => {
      holding = false
      for (const commit of held.splice(0)) commit()
    },
  }
}

test.each([
  ['one command after the other', '250 plain'],
  ['pipelining', '250-fast\r\n250 PIPELINING'],
])(
  'over SMTP (%s) no connection has more than one message that was accepted and is not recorded',
  async (_, extensions) => {
    const it = await dispatcherWithHeldCommits(extensions)
    const call = it.course.dispatch({ limit: 1000 })
    // Every connection has been through one message, and has begun the next.
    const begun = () => it.server.lines.filter((line) => line === 'DATA').length
    await expect.poll(begun).toBe(2 * LINES.smtp)
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    expect(it.accepted).toHaveLength(LINES.smtp)
    expect(new Set(it.accepted.map(({ socket }) => socket)).size).toBe(LINES.smtp)
    it.release()
    expect(await call).toMatchObject({ sent: PEOPLE, remaining: 0 })
    expect(it.unbounded).toEqual([])
    expect(new Set(it.accepted.map(({ to }) => to)).size).toBe(PEOPLE)
    expect(it.accepted).toHaveLength(PEOPLE)
  },
)

test('an undecided refusal keeps no connection waiting', async () => {
  const it = await dispatcherWithHeldCommits('250 plain', { people: LINES.smtp + 1, refuseFirst: true })
  it.release()
  // The refused message is recorded once a later one is taken, and that one goes out on the same connection.
  expect(await it.course.dispatch({ limit: 1000 })).toMatchObject({ sent: LINES.smtp, failed: 1, unknown: 0 })
  expect(it.unbounded).toEqual([])
})
