import { cp, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { openStore } from '../../src/core/store/open.ts'
import { startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { begin } from '../support/learning.ts'
import { apiSink } from '../torture/sinks.ts'

const SECRET = 'a-dispatch-secret-of-enough-length'
const PEOPLE = 3
const root = fileURLToPath(new URL('../../', import.meta.url))

/** The package as it is installed, in a folder of its own. */
async function installed(): Promise<string> {
  const folder = await emptyFolder()
  for (const part of ['bin', 'dist', 'templates', 'package.json'])
    await cp(path.join(root, part), path.join(folder, part), { recursive: true })
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return folder
}

async function fill(data: string): Promise<void> {
  const { course, close } = await openStore({ kind: 'sqlite', file: path.join(data, 'platform.sqlite') })
  for (let n = 0; n < PEOPLE; n += 1) {
    const [id, address] = [`person-${n}`, `p${n}@example.com`]
    await course.requestConfirmation({
      course: 'quantum',
      identity: address,
      address,
      id,
      tokenHash: id,
      now: 0,
    })
    await course.confirm({ begin, tokenHash: id, now: 0 })
  }
  await close()
}

async function api() {
  const sink = await apiSink()
  onTestFinished(() => sink.close())
  return sink.env
}

async function smtp() {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  return {
    MAILER_API_KEY: 'key-for-tests',
    MAILER_SMTP_URL: inbox.smtpUrl,
    MAILER_FROM: 'course@example.com',
  }
}

test.each([
  ['a mail API', api],
  ['SMTP', smtp],
])('a running daemon sends every lesson by %s after its build was removed', async (_, mail) => {
  const [folder, data] = await Promise.all([installed(), emptyFolder()])
  await fill(data)
  const env = { ...(await mail()), EMAIL_DISPATCH_SECRET: SECRET }
  const program = path.join(folder, 'bin/platformctl.js')
  const daemon = await startDaemon(['--service', 'web', '--no-schedule', '--data', data], {
    cwd: data,
    env,
    program,
  })
  onTestFinished(async () => void (await daemon.stop('SIGKILL')))
  const dispatch = async (secret: string) => {
    const headers = { Authorization: `Bearer ${secret}` }
    return fetch(`${daemon.urls.web}/api/email/dispatch`, { method: 'POST', headers })
  }
  expect((await dispatch('another-secret')).status).toBe(401)
  for (const part of ['dist', 'templates']) await rm(path.join(folder, part), { recursive: true })
  expect(await (await dispatch(SECRET)).json()).toMatchObject({ sent: PEOPLE, failed: 0, unknown: 0 })
})
