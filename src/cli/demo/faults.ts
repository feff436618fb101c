import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { signWebhook } from '../../core/incidents/webhook.ts'
import { PATHS } from '../../core/paths.ts'
import { secret as asSecret } from '../../core/secret.ts'
import { openStore } from '../../core/store/open.ts'
import { connect } from '../../core/store/sqlite/connection.ts'
import { failure } from '../context.ts'
import { iso } from '../output/text.ts'
import type { SteppingClock } from './live.ts'

/** A port in front of a service: shut, its neighbours are refused as if the service had stopped. */
export async function openDoor(target: () => number) {
  const open = new Set<Socket>()
  let isShut = false
  const server = createServer((client) => {
    if (isShut) return void client.destroy()
    open.add(client)
    // When either side ends or breaks, both are destroyed.
    pipeline(client, createConnection(target(), '127.0.0.1'), client, () => {
      open.delete(client)
      client.destroy()
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    /** Answers with what opens it again. */
    shut() {
      isShut = true
      cut()
      return () => {
        isShut = false
      }
    },
    async close() {
      cut()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** Holds the lock of a store, as a program that hangs would; answers with what ends it. */
export function hangStore(file: string): () => void {
  const database = connect({ file, busyMs: 5000 })
  database.exec('BEGIN EXCLUSIVE')
  return () => {
    database.exec('ROLLBACK')
    database.close()
  }
}

/** Announces on the demo's clock, which is days ahead of that of a command. */
export async function announceIn(file: string, clock: SteppingClock, id: string, text: string) {
  const store = await openStore({ kind: 'sqlite', file })
  const from = clock.now()
  const announcement = { id, text, translations: {}, from, until: undefined, by: 'demo' }
  await store.incidents.announce(announcement, from).finally(() => store.close())
}

export const feedbackSecret = (secret: string) => `whsec_${Buffer.from(secret).toString('base64')}`

/** Reports a bounce of an address that was subscribed for it, as a provider of mail would. */
export async function bounce(web: string, secret: string, clock: SteppingClock): Promise<void> {
  const address = `gone-${clock.now()}@example.com`
  await post(`${web}${PATHS.subscribe}`, { body: { email: address } })
  const timestamp = String(Math.floor(clock.now() / 1000))
  const body = { type: 'hard-bounce', timestamp: iso(clock.now()), data: { address, status: '5.1.1' } }
  const id = `bounce-${timestamp}`
  const signature = signWebhook(id, timestamp, JSON.stringify(body), asSecret(feedbackSecret(secret)))
  const signed = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
  await post(`${web}/api/email/feedback/standard`, { body, headers: signed })
}

/** Asks an endpoint of the demo, as a visitor or, with more headers, as the schedule or a provider of mail does. */
export async function post(
  url: string,
  options: {
    readonly body?: unknown
    readonly headers?: Record<string, string>
    readonly signal?: AbortSignal
  },
): Promise<Record<string, unknown>> {
  const headers = { 'Content-Type': 'application/json', ...options.headers }
  const body = JSON.stringify(options.body) ?? null
  const response = await fetch(url, { method: 'POST', ...options, headers, body })
  const answer = (await response.json()) as Record<string, unknown>
  if (response.ok) return answer
  throw failure(`${new URL(url).pathname} answered ${response.status}: ${String(answer.message)}`)
}
