import type { Socket } from 'node:net'
import path from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import { openStore } from '../../src/core/store/open.ts'
import { closeAll } from '../../src/daemon/options.ts'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder } from '../support/folder.ts'
import { hostAt } from '../support/incidents.ts'
import { enrolIn } from '../support/learning.ts'
import { keptLog } from '../support/opened.ts'
import { rudeSmtp } from '../support/rude-smtp.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'

/** A daemon with people whose first lesson is due, and a mail server that takes messages and answers as told. */
async function sending(people: number, answers: (message: number) => boolean) {
  const dataFolder = await emptyFolder()
  const store = await openStore({ kind: 'sqlite', file: path.join(dataFolder, 'platform.sqlite') })
  for (let n = 0; n < people; n += 1) await enrolIn(store, `person-${n}`, Date.now())
  await store.close()
  let taken = 0
  const waiting: Socket[] = []
  const smtp = await rudeSmtp((word, socket) => {
    if (word !== 'END') return undefined
    taken += 1
    if (answers(taken)) return undefined
    waiting.push(socket)
    return null
  })
  const { log, told } = keptLog()
  const daemon = await startLearningDaemon({
    env: {
      EMAIL_DISPATCH_SECRET: SECRET,
      MAILER_API_KEY: 'key',
      MAILER_FROM: 'course@example.com',
      MAILER_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
    },
    dataFolder,
    log,
  })
  const dispatch = fetch(`${daemon.urls.web}/api/email/dispatch`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${SECRET}` },
  }).catch(() => undefined)
  await expect.poll(() => taken, { timeout: 10_000 }).toBe(people)
  const answerAll = () => {
    for (const socket of waiting) socket.write('250 2.0.0 ok\r\n')
  }
  return { daemon, dispatch, answerAll, said: (event: string) => told(event)[0] }
}

test('a stop that aborts messages says how many may be sent twice', async () => {
  const it = await sending(3, (message) => message === 1)
  await it.daemon.close({ deadlineMs: 300 })
  await it.dispatch
  expect(it.said('stop_cut')).toMatchObject({ messages: 2 })
  expect(it.said('stopped')).toMatchObject({ mayBeRepeated: 2 })
})

test('all parts of a daemon that hang end within one deadline, and two seconds each', async () => {
  let now = 0
  const hanging = (deadlineMs: number) => {
    now += deadlineMs
  }
  const host = hostAt(() => 0, {}, { ...systemClock, monotonic: () => now })
  await closeAll(host, { traffic: hanging, platform: hanging, alerts: hanging }, 90_000)
  expect(now).toBe(94_000)
})

test('a stop waits for messages that are out, and none that is answered in time may be repeated', async () => {
  const it = await sending(3, () => false)
  const stopped = it.daemon.close({ deadlineMs: 60_000 })
  await expect.poll(() => it.said('stopping')).toBeDefined()
  it.answerAll()
  await Promise.all([stopped, it.dispatch])
  expect(it.said('stop_cut')).toBeUndefined()
  expect(it.said('stopped')).toMatchObject({ mayBeRepeated: 0 })
})

test('a stop after every message was answered says that none may be repeated', async () => {
  const it = await sending(3, () => true)
  await it.dispatch
  await it.daemon.close({ deadlineMs: 5000 })
  expect(it.said('stop_cut')).toBeUndefined()
  expect(it.said('stopped')).toMatchObject({ mayBeRepeated: 0 })
})
