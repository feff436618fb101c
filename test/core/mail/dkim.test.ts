import { generateKeyPairSync } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../../src/cli/demo/inbox.ts'
import { readSettings } from '../../../src/core/env/settings.ts'
import { createBounceAddresses } from '../../../src/core/mail/feedback/bounce-address.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { compiledMails } from '../../support/learning.ts'
import { rudeSmtp } from '../../support/rude-smtp.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PEM = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
const RECORD = `v=DKIM1; k=rsa; p=${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`

/** A lesson and a sign-in mail, as a real SMTP server received them. */
async function received(env: Record<string, string> = {}) {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const { mail } = readSettings(learning, {
    MAILER_API_KEY: 'key-of-the-mailer',
    MAILER_SMTP_URL: inbox.smtpUrl,
    MAILER_FROM: '"Grüße, Course" <course@mail.example.com>',
    MAILER_DKIM_DOMAIN: 'example.com',
    MAILER_DKIM_SELECTOR: 's7',
    MAILER_REPLY_TO: 'help@example.com',
    // On one line, as an env file holds it.
    MAILER_DKIM_KEY: PEM.replaceAll('\n', '\\n'),
    ...env,
  })
  const mailer = openMailer({
    compiled: compiledMails,
    mail,
    bounceAddresses: async () => createBounceAddresses('bounce@example.com', 'a key of tests'),
  })
  onTestFinished(() => mailer.close())
  const to = { name: undefined, address: 'ada@example.com' }
  const [date, link] = [new Date('2026-11-22T08:00:00Z'), 'https://www.example.com/u?s=1&t=2']
  const slots = { lessonUrl: 'https://www.example.com/lessons/1', unsubscribeUrl: link }
  await mailer.send({ template: 'course-day-1', slots, to, about: 'a', date, unsubscribeUrl: link })
  await mailer.send({
    template: 'magic-link',
    slots: { signInUrl: 'https://www.example.com/in' },
    to,
    about: 'b',
    date,
  })
  return inbox.mails
}

const verify = async (source: string) => {
  const resolver = async (name: string) => (name === 's7._domainkey.example.com' ? [[RECORD]] : [])
  const { results } = await dkimVerify(Buffer.from(source), { resolver })
  return results[0]
}

test('a verifier accepts the signature of every mail, with every field of the message inside', async () => {
  const mails = await received()
  for (const { source } of mails) {
    const result = await verify(source)
    expect(result).toMatchObject({
      status: { result: 'pass', aligned: 'example.com' },
      signingDomain: 'example.com',
      selector: 's7',
    })
  }
  const [head = ''] = mails[0]?.source.split('\r\n\r\n') ?? []
  const [, signed = ''] = /[; ]h=([^;]+);/.exec(head) ?? []
  const fields = [...head.matchAll(/^([\w-]+):/gm)].map(([, name = '']) => name.toLowerCase())
  expect(signed.replaceAll(/\s/g, '').split(':').sort()).toEqual(
    fields.filter((name) => name !== 'dkim-signature').sort(),
  )
})

test('a changed unsubscribe link, sender or text breaks the signature', async () => {
  const [lesson] = await received()
  const source = lesson?.source ?? ''
  for (const [from, to] of [
    ['List-Unsubscribe: <https://www.example.com', 'List-Unsubscribe: <https://evil.example'],
    ['course@mail.example.com', 'boss@mail.example.com'],
    ['qubit', 'qubits'],
  ] as const) {
    const changed = source.replace(from, to)
    expect(changed).not.toBe(source)
    expect((await verify(changed))?.status.result).not.toBe('pass')
  }
})

test('lessons say that they are automatic and by which sender, and sign-in mail only that it is automatic', async () => {
  const [lesson, signIn] = (await received()).map(({ source }) => source)
  expect(lesson).toMatch(/^Auto-Submitted: auto-generated\r?$/m)
  expect(lesson).toMatch(/^Feedback-ID: course-day-1:course:mail:[0-9a-f]{12}\r?$/m)
  expect(signIn).toMatch(/^Auto-Submitted: auto-generated\r?$/m)
  expect(signIn).not.toMatch(/^Feedback-ID/m)
})

test('the envelope sender carries the token of its recipient', async () => {
  const server = await rudeSmtp()
  await received({
    MAILER_BOUNCE_ADDRESS: 'bounce@example.com',
    MAILER_SMTP_URL: `smtp://127.0.0.1:${server.port}`,
  })
  const senders = server.lines.filter((line) => line.startsWith('MAIL FROM'))
  expect(senders).toHaveLength(2)
  for (const sender of senders) expect(sender).toMatch(/^MAIL FROM:<bounce\+[a-z2-7]{26}@example\.com>/)
})

test('a key in a file, with its line ends, signs as one on a single line', async () => {
  const [lesson] = await received({ MAILER_DKIM_KEY: PEM })
  expect(await verify(lesson?.source ?? '')).toMatchObject({ status: { result: 'pass' } })
})

test('with an unusable key no mail leaves unsigned: DKIM counts as half-configured', () => {
  const { groups, mail } = readSettings(learning, {
    MAILER_API_KEY: 'key-of-the-mailer',
    MAILER_SMTP_URL: 'smtp://127.0.0.1:25',
    MAILER_FROM: 'course@example.com',
    MAILER_DKIM_DOMAIN: 'example.com',
    MAILER_DKIM_SELECTOR: 's7',
    MAILER_DKIM_KEY: 'not a key',
  })
  expect(groups.get('dkim')).toBe('half-configured')
  expect(mail?.dkim).toBeUndefined()
})
