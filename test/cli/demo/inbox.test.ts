import { request } from 'node:http'
import { createTransport } from 'nodemailer'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../../src/cli/demo/inbox.ts'
import { mailerTo, WELCOME } from '../../support/mailers.ts'

async function inboxWithOneMail() {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const transport = createTransport(inbox.smtpUrl)
  await transport.sendMail({
    from: 'course@example.com',
    to: 'ada@example.com',
    subject: 'Grüße <b>& more</b>',
    html: '<html><head></head><body><script>alert(1)</script><a href="https://example.com">link</a></body></html>',
    text: 'plain',
  })
  transport.close()
  return inbox
}

test('decodes a mail received over SMTP and shows it in every view', async () => {
  const inbox = await inboxWithOneMail()
  expect(inbox.mails).toMatchObject([
    {
      id: 1,
      from: 'course@example.com',
      to: 'ada@example.com',
      subject: 'Grüße <b>& more</b>',
      text: 'plain\n',
    },
  ])
  const list = (await (await fetch(`${inbox.pageUrl}/mails.json`)).json()) as { subject: string }[]
  expect(list.map((mail) => mail.subject)).toEqual(['Grüße <b>& more</b>'])
  expect(await (await fetch(`${inbox.pageUrl}/mails/1.eml`)).text()).toBe(inbox.mails[0]?.source)
})

test('the content of a mail is shown without scripts, network or the page’s origin', async () => {
  const inbox = await inboxWithOneMail()
  const response = await fetch(`${inbox.pageUrl}/mails/1.html`)
  expect(response.headers.get('content-security-policy')).toMatch(
    /^sandbox allow-popups[^;]*; default-src 'none'/,
  )
  expect(await response.text()).toContain('<head><base target="_blank">')
})

test('a mail without a date shows when it arrived, and mails are deleted by the page alone', async () => {
  const inbox = await openInbox({ pagePort: 0, now: () => Date.UTC(2027, 0, 10, 9) })
  onTestFinished(() => inbox.close())
  const transport = createTransport(inbox.smtpUrl)
  const raw = 'From: a@example.com\r\nTo: b@example.com\r\nSubject: Bare\r\n\r\nHello\r\n'
  for (let count = 0; count < 2; count += 1)
    await transport.sendMail({ envelope: { from: 'a@example.com', to: 'b@example.com' }, raw })
  transport.close()
  expect(inbox.mails[0]).toMatchObject({ subject: 'Bare', date: '2027-01-10T09:00:00.000Z' })
  const remove = async (path: string, headers: Record<string, string> = { 'X-Inbox': '1' }) =>
    (await fetch(`${inbox.pageUrl}${path}`, { method: 'DELETE', headers })).status
  expect(await remove('/mails', {})).toBe(403)
  expect(await remove('/mails/1')).toBe(204)
  expect(inbox.mails.map(({ id }) => id)).toEqual([2])
  expect(await remove('/mails')).toBe(204)
  expect(inbox.mails).toEqual([])
})

test('a broken inbox takes no mail over a connection that is open either, until it is repaired', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const mailer = mailerTo(inbox.smtpUrl)
  expect((await mailer.send(WELCOME)).kind).toBe('sent')
  const repair = inbox.refuse()
  const isWell = () =>
    mailer.verify().then(
      () => true,
      () => false,
    )
  await expect.poll(isWell).toBe(false)
  expect((await mailer.send(WELCOME)).kind).toBe('transient')
  repair()
  expect(await isWell()).toBe(true)
  expect((await mailer.send(WELCOME)).kind).toBe('sent')
})

test('an unknown mail and an unknown path give 404', async () => {
  const inbox = await inboxWithOneMail()
  for (const path of ['/mails/2.html', '/mails/0.eml', '/mails/-1.html', '/nope']) {
    expect((await fetch(inbox.pageUrl + path)).status).toBe(404)
  }
})

test('refuses a page port in use, and closes with open streams', async () => {
  const inbox = await inboxWithOneMail()
  await expect(openInbox({ pagePort: Number(new URL(inbox.pageUrl).port) })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  })
  const events = await fetch(`${inbox.pageUrl}/events`)
  expect(events.status).toBe(200)
  await inbox.close()
  await expect(events.text()).rejects.toThrow()
})

/** The status of a request line as it stands, which `fetch` would tidy up. */
function statusOf(pageUrl: string, path: string, host = new URL(pageUrl).host): Promise<number | undefined> {
  const { hostname, port } = new URL(pageUrl)
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, headers: { host } }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })
}

test('a path that is none is answered, and the inbox goes on', async () => {
  const { pageUrl } = await inboxWithOneMail()
  for (const path of ['//', '//x', '/\\', '//[', '/mails/%', '*', 'http://['])
    expect([400, 404], path).toContain(await statusOf(pageUrl, path))
  expect((await fetch(pageUrl)).status).toBe(200)
})

test('a page of another site whose name leads to this machine cannot read the mails', async () => {
  const inbox = await inboxWithOneMail()
  const { port } = new URL(inbox.pageUrl)
  for (const host of ['rebound.example', `rebound.example:${port}`, '127.0.0.1.rebound.example'])
    expect(await statusOf(inbox.pageUrl, '/mails.json', host), host).toBe(421)
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`])
    expect(await statusOf(inbox.pageUrl, '/mails.json', host)).toBe(200)
})
