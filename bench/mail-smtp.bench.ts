import { createTransport } from 'nodemailer'
import type { Mail } from '../src/core/mail/mailer.ts'
import { openMailer } from '../src/core/mail/open.ts'
import { mimeOf } from '../src/core/mail/transports/mime.ts'
import { secret } from '../src/core/secret.ts'
import { compiledMails } from '../test/support/learning.ts'
import { bareSmtp } from './bare-smtp.ts'
import type { Benchmark } from './harness.ts'
import { perSecond, startSink } from './sink.ts'

const MESSAGES = 2000
const POOL = 20

const mail: Mail = {
  template: 'course-day-2',
  slots: {
    lessonUrl: 'https://www.example.com/lessons/2',
    unsubscribeUrl: 'https://www.example.com/api/email/unsubscribe?s=sub_0123456789&t=0123456789abcdef',
  },
  to: { name: undefined, address: 'reader@example.com' },
  about: 'course.sub_0123456789.1.2',
  date: new Date('2026-11-21T04:00:00Z'),
  unsubscribeUrl: 'https://www.example.com/api/email/unsubscribe?s=sub_0123456789&t=0123456789abcdef',
}

export const benchmark: Benchmark = {
  name: 'mail-smtp',
  title: 'Sending over SMTP on loopback',
  unit: 'mails/s',
  better: 'higher',
  promises: [{ against: 'nodemailer, pooled', ratio: 6 }],
  notes:
    'A pool of 20. Ours fills the template for every send; the bare client sends a copy of finished bytes, with the next envelope in the same write; nodemailer gets finished texts, or finished bytes.',
  async open() {
    const sink = await startSink('./smtp-sink.ts')
    const ours = openMailer({
      compiled: compiledMails,
      mail: {
        key: secret('key'),
        route: { kind: 'smtp', url: secret(`smtp://127.0.0.1:${sink.port}`) },
        from: { name: 'Quantum Course', address: 'course@example.com' },
        replyTo: undefined,
      },
    })
    const pool = () =>
      createTransport({
        pool: true,
        host: '127.0.0.1',
        port: sink.port,
        maxConnections: POOL,
        maxMessages: Number.POSITIVE_INFINITY,
      })
    const [ordinary, raw] = [pool(), pool()]
    const message = await ours.compose(mail)
    const bytes = mimeOf(message)
    const envelope = { from: message.from.address, to: [message.to.address] }
    const lines = await Promise.all(
      Array.from({ length: POOL }, () => bareSmtp(sink.port, message.from.address, message.to.address)),
    )
    const idle = [...lines]
    const of = (send: () => Promise<unknown>) => () => perSecond(MESSAGES, POOL, send)
    return {
      contenders: [
        {
          name: 'platformctl',
          role: 'ours',
          measure: of(async () => {
            const outcome = await ours.send(mail)
            if (outcome.kind !== 'sent') throw new Error(outcome.reason)
          }),
        },
        {
          name: 'a bare client that pipelines',
          role: 'floor',
          measure: of(async () => {
            const line = idle.pop()
            if (line === undefined) throw new Error('more messages at once than connections')
            await line.send(Buffer.from(bytes))
            idle.push(line)
          }),
        },
        {
          name: 'nodemailer, pooled',
          role: 'peer',
          measure: of(() =>
            ordinary.sendMail({
              envelope,
              from: { name: message.from.name ?? '', address: message.from.address },
              to: message.to.address,
              subject: message.subject,
              messageId: `<${message.messageId}>`,
              date: message.date,
              headers: { ...message.headers },
              html: message.html,
              text: message.text,
            }),
          ),
        },
        {
          name: 'nodemailer, pooled, prebuilt bytes',
          role: 'peer',
          measure: of(() => raw.sendMail({ envelope, raw: bytes })),
        },
      ],
      async close() {
        await ours.close()
        ordinary.close()
        raw.close()
        for (const line of lines) line.close()
        sink.close()
      },
    }
  },
}
