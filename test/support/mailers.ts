import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { onTestFinished } from 'vitest'
import type { Mailbox } from '../../src/core/address.ts'
import type { Mail, Mailer } from '../../src/core/mail/mailer.ts'
import { openMailer } from '../../src/core/mail/open.ts'
import { secret } from '../../src/core/secret.ts'
import { compiledMails } from './learning.ts'

export const WELCOME: Mail = {
  template: 'welcome',
  slots: { startUrl: 'https://www.example.com/' },
  to: { name: undefined, address: 'ada@example.com' },
  about: 'user.1',
  date: new Date('2026-11-21T04:00:00Z'),
}

/** What tells somebody that an exam was passed. */
export const EXAM = { exam: 'Gates', score: '87 %', resultUrl: 'https://www.example.com/' }

/** The key of every mailer here: it may be seen nowhere. */
export const MAILER_KEY = 'canary-password'

/** A mailer for the SMTP server or the mail API at this address. It is closed with the test. */
export function mailerTo(
  url: string,
  {
    key = MAILER_KEY,
    from = { name: undefined, address: 'course@example.com' },
    replyTo,
  }: { readonly key?: string; readonly from?: Mailbox; readonly replyTo?: Mailbox } = {},
): Mailer {
  const mailer = openMailer({
    compiled: compiledMails,
    mail: {
      key: secret(key),
      route: url.startsWith('smtp') ? { kind: 'smtp', url: secret(url) } : { kind: 'api', url },
      from,
      replyTo,
    },
  })
  onTestFinished(() => mailer.close())
  return mailer
}

/** A mail server on loopback that takes mail from anybody; gives its port. It is closed with the test. */
export async function smtpServer(options: SMTPServerOptions): Promise<number> {
  const server = new SMTPServer({ authOptional: true, ...options })
  server.on('error', () => {})
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return (server.server.address() as AddressInfo).port
}

export const tlsFixture = (name: string): string =>
  readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url), 'utf8')

/** The pair of a certificate for `mail.example.com`, of the test authority (`ca.crt`). */
export const MAIL_EXAMPLE = {
  key: tlsFixture('mail.example.com.key'),
  cert: tlsFixture('mail.example.com.crt'),
}

/** Trusts a certificate until the test ends. */
export function trust(certificate: string): void {
  const before = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...before, tlsFixture(certificate)])
  onTestFinished(() => tls.setDefaultCACertificates(before))
}
