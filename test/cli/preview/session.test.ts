import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSender } from '../../../src/cli/preview/sender.ts'
import { servePreview } from '../../../src/cli/preview/server.ts'
import { testContext } from '../../support/context.ts'
import { kilnSchool } from '../../support/kiln-school.ts'
import { serveBodies } from '../../support/servers.ts'

/** A preview that may send to Ada, and the mails that its provider got. */
async function open() {
  const sent: string[] = []
  const provider = await serveBodies((body, response) => {
    sent.push(body)
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"id":"mail-1"}')
  })
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-test-'))
  const school = await kilnSchool(folder, { days: 1 })
  const env = {
    MAILER_API_KEY: 'a-key-of-a-provider',
    MAILER_API_URL: provider,
    MAILER_FROM: 'a@example.com',
  }
  const { context } = testContext({ platform: school.platform })
  const sender = openSender(context, env, ['ada@example.com'])
  const { courses, language } = school.platform
  const shown = { courses, language, zone: 'UTC', now: Date.now }
  const preview = await servePreview(school.workshop, 0, sender, shown)
  onTestFinished(async () => {
    await preview.close()
    school.workshop.close()
    await rm(folder, { recursive: true })
  })
  const post = async (target: string, body: unknown, token = '') => {
    const response = await fetch(`${preview.url}${target}`, {
      method: 'POST',
      headers: { 'X-Preview-Token': token },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    return { status: response.status, token: /"token":"([^"]+)"/.exec(text)?.[1], text }
  }
  const [name] = school.workshop.names
  return { preview, post, sent, name }
}

test('another account can open the preview, and neither send nor learn to whom it may', async () => {
  const { preview, post, sent, name } = await open()
  const html = await (await fetch(preview.url)).text()
  expect(html).not.toContain(preview.key)
  for (const token of ['', 'guessed', preview.key])
    expect((await post(`/mails/${name}.send`, { to: 'ada@example.com' }, token)).status).toBe(403)
  expect((await fetch(`${preview.url}/sender.json`)).status).toBe(403)
  expect((await fetch(`${preview.url}/session`)).status).toBe(403)
  expect((await post('/session', { key: 'guessed' })).status).toBe(403)
  expect(sent).toEqual([])
})

test('the printed key is exchanged once, for the right to send to the named addresses alone', async () => {
  const { preview, post, sent, name } = await open()
  const { token } = await post('/session', { key: preview.key })
  expect(token).toMatch(/^[\w-]{32}$/)
  expect((await post('/session', { key: preview.key })).status).toBe(403)
  const stranger = await post(`/mails/${name}.send`, { to: 'stranger@example.com' }, token)
  expect(stranger).toMatchObject({ status: 400, text: expect.stringContaining('--to') })
  expect(sent).toEqual([])
  expect(await post(`/mails/${name}.send`, { to: 'ada@example.com' }, token)).toMatchObject({ status: 200 })
  expect(sent).toEqual([expect.stringContaining('ada@example.com')])
})
