import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { quantile } from './claims.ts'
import type { Benchmark, Contender } from './harness.ts'
import { daemonServer } from './servers.ts'
import { startSink } from './sink.ts'

const RATE = 50
const MAILS = 200

export const benchmark: Benchmark = {
  name: 'handover',
  title: `From 202 to handover of a confirmation, ${RATE} a second, p99`,
  unit: 'ms',
  better: 'lower',
  promises: [],
  bound: 1000,
  rounds: 10,
  notes: `From the answer to a subscription until the mail API has its mail; ${MAILS} a round, each to a new address. The daemon has stored request and mail durably (SQLite, synchronous FULL) when it answers; the floor keeps nothing, and posts a mail of the same bytes once it has answered.`,
  async open(opened) {
    const arrived = new Map<string, { at: number; body: string; heard: () => void }>()
    const api = createServer(async (mail, response) => {
      const at = performance.now()
      let body = ''
      for await (const chunk of mail.setEncoding('utf8')) body += chunk
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"msg_0123456789"}')
      const found = arrived.get(/reader-[\d-]+@example\.com/.exec(body)?.[0] ?? '')
      if (found) Object.assign(found, { at, body }).heard()
    })
    await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
    opened.defer(() => {
      api.close()
      api.closeAllConnections()
    })
    const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}/emails`
    let run = 0
    /** Milliseconds from the answer until the mail arrives, and the mail. */
    async function subscribe(port: number, number: number) {
      const email = `reader-${run}-${number}@example.com`
      const mail = new Promise<void>((heard) => arrived.set(email, { at: 0, body: '', heard }))
      const { statusCode, body } = await request(`http://127.0.0.1:${port}/api/email/subscribe`, {
        method: 'POST',
        // Each visitor comes from an address of its own, as one may ask 30 times a minute.
        headers: { 'content-type': 'application/json', 'x-forwarded-for': `10.${run}.0.${number}` },
        body: JSON.stringify({ email }),
      })
      const answered = performance.now()
      if (statusCode !== 202) throw new Error(`answered ${statusCode}: ${await body.text()}`)
      await body.dump()
      await mail
      const { at = Number.NaN, body: text = '' } = arrived.get(email) ?? {}
      arrived.delete(email)
      return { ms: at - answered, template: text.replaceAll(email, '{email}') }
    }
    async function times(port: number): Promise<number[]> {
      run += 1
      const began = performance.now()
      const mails = Array.from({ length: MAILS }, async (_, number) => {
        await sleep(Math.max(0, (number * 1000) / RATE - (performance.now() - began)))
        return (await subscribe(port, number)).ms
      })
      return (await Promise.all(mails)).sort((a, b) => a - b)
    }
    const daemon = opened.adopt(
      await daemonServer({
        NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
        MAILER_API_KEY: 'provider-key',
        MAILER_FROM: 'Course <course@example.com>',
        MAILER_API_URL: url,
        RATE_LIMIT_PER_MINUTE: '1000000',
        EMAIL_CONFIRMATIONS_PER_DAY: '1000000',
        TRUST_PROXY: '127.0.0.1',
      }),
      (server) => server.close(),
    )
    const { template } = await subscribe(daemon.port, 0)
    const bare = opened.adopt(await startSink('./handover-sink.ts', [url, template]), (one) => one.close())
    /** Two figures of the same mails. */
    const both = (name: string, port: number, role: Contender['role']): Contender[] => {
      let last: number[] = []
      const p99 = async () => {
        last = await times(port)
        return quantile(last, 0.99)
      }
      return [
        { name: `${name}, p99`, role, measure: p99 },
        {
          name: `${name}, p50`,
          role: role === 'ours' ? 'peer' : role,
          measure: async () => quantile(last, 0.5),
        },
      ]
    }
    return {
      contenders: [
        ...both('platformctl', daemon.port, 'ours'),
        ...both('without a store', bare.port, 'floor'),
      ],
    }
  },
}
