import { Pool } from 'undici'
import { joinPieces } from '../src/core/mail/encoding.ts'
import type { Mail } from '../src/core/mail/mailer.ts'
import { openMailer } from '../src/core/mail/open.ts'
import { jsonPiecesOf } from '../src/core/mail/transports/forms.ts'
import { secret } from '../src/core/secret.ts'
import { compiledMails } from '../test/support/learning.ts'
import type { Benchmark } from './harness.ts'
import { perSecond, startSink } from './sink.ts'

const MESSAGES = 5000
const CONNECTIONS = 50

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
  name: 'mail-http',
  title: 'Sending to a mail API on loopback',
  unit: 'mails/s',
  better: 'higher',
  promises: [{ against: 'undici, posting a copy for each', ratio: 0.8 }],
  notes:
    '50 connections. Ours fills the template, builds the JSON and reads each answer’s id; undici posts a finished buffer. Different mails are different bytes, so the floor is a copy for each: 0.9 of the same bytes is above it here. Filling texts only where a transport reads them gained nothing. Most of what a copy costs is new memory: in a loop that only posts, memory of earlier mails saves 5 to 10 of 36 µs. It is not used again, because a socket may still read it after an early answer.',
  async open() {
    const sink = await startSink('./http-sink.ts')
    const url = `http://127.0.0.1:${sink.port}/emails`
    const ours = openMailer({
      compiled: compiledMails,
      mail: {
        key: secret('provider-key'),
        route: { kind: 'api', url },
        from: { name: 'Quantum Course', address: 'course@example.com' },
        replyTo: undefined,
      },
    })
    const message = await ours.compose(mail)
    const body = joinPieces(jsonPiecesOf(message))
    const pool = new Pool(`http://127.0.0.1:${sink.port}`, {
      connections: CONNECTIONS,
      pipelining: 1,
      keepAliveTimeout: 30_000,
    })
    const post = async (bytes: Buffer) => {
      const answer = await pool.request({
        path: '/emails',
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: 'Bearer provider-key',
          'idempotency-key': message.key,
        },
        body: bytes,
      })
      await answer.body.text()
    }
    return {
      contenders: [
        {
          name: 'platformctl',
          role: 'ours',
          measure: () =>
            perSecond(MESSAGES, CONNECTIONS, async () => {
              const outcome = await ours.send(mail)
              if (outcome.kind !== 'sent') throw new Error(outcome.reason)
            }),
        },
        {
          name: 'undici, posting the same bytes',
          role: 'floor',
          measure: () => perSecond(MESSAGES, CONNECTIONS, () => post(body)),
        },
        {
          name: 'undici, posting a copy for each',
          role: 'floor',
          measure: () => perSecond(MESSAGES, CONNECTIONS, () => post(Buffer.from(body))),
        },
      ],
      async close() {
        await ours.close()
        await pool.close()
        sink.close()
      },
    }
  },
}
