import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { spawnDaemon } from './daemon.ts'
import { dice } from './random.ts'

export interface RestartsOptions {
  readonly times: number
  readonly seed: number
  readonly onRound?: (round: number, acknowledged: number) => void
}

export interface RestartsResult {
  readonly acknowledged: number
  /** Acknowledged addresses that are not in the store. */
  readonly lost: readonly string[]
  /** Rounds that did not end with 0. */
  readonly unclean: readonly string[]
}

const CLIENTS = 8

/**
 * Starts the daemon on one data folder again and again, subscribes without a pause, and sends SIGTERM in the middle.
 * Afterwards every address that got its 202 must be in the store.
 */
export async function restarts({ times, seed, onRound }: RestartsOptions): Promise<RestartsResult> {
  const random = dice(seed)
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-restarts-'))
  const acknowledged = new Set<string>()
  const unclean: string[] = []
  try {
    for (let round = 0; round < times; round += 1) {
      const daemon = await spawnDaemon({
        folder,
        args: ['--no-schedule', '--service', 'web'],
        // Each subscription comes from a client of its own, so that none is refused for its number; nor are all together.
        env: { TRUST_PROXY: '127.0.0.1', LOG_LEVEL: 'warn', EMAIL_CONFIRMATIONS_PER_DAY: '1000000' },
      })
      let stopped = false
      const agent = new Agent({ keepAlive: true })
      const clients = Array.from({ length: CLIENTS }, async (_, client) => {
        for (let n = 0; !stopped; n += 1) {
          const address = `r${round}-c${client}-${n}@example.com`
          const status = await subscribe(
            daemon.urls.web,
            address,
            agent,
            `10.${client}.${(n >> 8) & 255}.${n & 255}`,
          )
          if (status === 202) acknowledged.add(address)
          else if (status === undefined) await sleep(1)
        }
      })
      await sleep(5 + random.below(150))
      daemon.child.kill('SIGTERM')
      const { code, signal } = await daemon.exited
      stopped = true
      await Promise.all(clients)
      agent.destroy()
      if (code !== 0 || daemon.complaints.length > 0)
        unclean.push(`round ${round}: ${code ?? signal} ${daemon.complaints.join(' ')}`)
      onRound?.(round + 1, acknowledged.size)
    }
    const database = new Database(path.join(folder, 'platform.sqlite'), { readonly: true })
    const stored = new Set(database.prepare('SELECT address FROM subscription').pluck().all())
    database.close()
    return {
      acknowledged: acknowledged.size,
      lost: [...acknowledged].filter((address) => !stored.has(address)),
      unclean,
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The status, or undefined when there was no answer: such a request was never acknowledged. */
function subscribe(url: string, address: string, agent: Agent, client: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const asked = request(
      `${url}/api/email/subscribe`,
      {
        method: 'POST',
        agent,
        headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': client },
      },
      (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode)).on('error', () => resolve(undefined))
      },
    )
    asked.on('error', () => resolve(undefined))
    asked.end(JSON.stringify({ email: address }))
  })
}
