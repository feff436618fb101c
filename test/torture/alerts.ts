import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { optionsOf, wholeNumber } from '../../scripts/options.ts'
import { progressOn } from '../../scripts/progress.ts'
import { openStore } from '../../src/core/store/open.ts'
import { seeded } from '../simulation/seeded.ts'

const USAGE = `npm run torture:alerts [-- --kills 100] [--seed 1]
  The built daemon under SIGKILL while it tells incidents to a webhook: as a message arrives, after it is answered, and at
  random. Exit 1 if a message was lost, or came twice to a receiver that knows its id.`
const { values } = optionsOf(USAGE, {
  options: { kills: { type: 'string', default: '100' }, seed: { type: 'string', default: '1' } },
})
const kills = wholeNumber(USAGE, '--kills', values.kills, 1)
const random = seeded(wholeNumber(USAGE, '--seed', values.seed))

const BIN = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))
const AHEAD = new URL('ahead.mjs', import.meta.url).href
/** Longer than a lease: what one life left claimed, the next may take at once. */
const NEXT_LIFE_MS = 100_000
const LIFE_MS = 10_000
const BATCH = 50

const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-alerts-'))
const file = path.join(folder, 'platform.sqlite')
/** What the receiver took, by message id; and what each message was about. */
const taken = new Map<string, number>()
const ids = new Map<string, Set<string>>()
let onStep = (_step: 'arrived' | 'answered') => {}
const receiver = createServer(async (request, response) => {
  onStep('arrived')
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { type, data } = JSON.parse(Buffer.concat(chunks).toString()) as {
    type: string
    data: { incident: string }
  }
  const id = String(request.headers['webhook-id'])
  taken.set(id, (taken.get(id) ?? 0) + 1)
  const about = `${data.incident} ${type}`
  ids.set(about, (ids.get(about) ?? new Set()).add(id))
  response.end(() => onStep('answered'))
}).listen(0, '127.0.0.1')
await once(receiver, 'listening')
const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`

const wanted = new Set<string>()
let batch: readonly string[] = []
let life = 0
const ahead = () => Date.now() + life * NEXT_LIFE_MS

/** Fifty incidents open; once all were told they end, and once that was told, others open. */
async function moreToTell(): Promise<void> {
  if ([...wanted].some((about) => !ids.has(about))) return
  const store = await openStore({ kind: 'sqlite', file })
  const now = ahead()
  const ends = batch.length > 0
  if (!ends) batch = Array.from({ length: BATCH }, (_, index) => `${life}-${index}`)
  for (const id of batch) {
    if (ends) await store.incidents.close({ cause: id, now, unseenSince: now })
    else
      await store.incidents.open({
        id,
        cause: id,
        service: 'web',
        reason: 'no answer in time',
        affected: [],
        openedAt: now,
        seenAt: now,
        closedAt: undefined,
        acknowledgedAt: undefined,
        acknowledgedBy: undefined,
      })
    wanted.add(`${id} incident.${ends ? 'closed' : 'opened'}`)
  }
  if (ends) batch = []
  await store.close()
}

function start(): ChildProcess {
  const ports = ['--service', 'web', '--web-port', '0', '--no-schedule', '--data', folder]
  return spawn(process.execPath, ['--import', AHEAD, BIN, 'daemon', ...ports], {
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      CLOCK_AHEAD_MS: String(life * NEXT_LIFE_MS),
      LOG_LEVEL: 'error',
      ALERT_WEBHOOK_URL: url,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

const began = performance.now()
const faults: string[] = []
const at = { arrived: 0, answered: 0, random: 0 }
const progress = progressOn()
try {
  for (let kill = 0; kill < kills; kill += 1, life += 1) {
    await moreToTell()
    const daemon = start()
    const ended = once(daemon, 'close')
    const where = random.pick(['arrived', 'answered', 'random'] as const)
    let left = random.between(1, 20)
    onStep = (step) => {
      if (where === 'random') setTimeout(() => daemon.kill('SIGKILL'), random.between(0, 30))
      else if (step === where) left -= 1
      if (left === 0) daemon.kill('SIGKILL')
    }
    const timer = setTimeout(() => daemon.kill('SIGKILL'), LIFE_MS)
    const [code] = await ended
    // One that ends by itself is no kill, and what it did is no proof.
    if (code !== null) faults.push(`a daemon ended by itself with ${code}`)
    clearTimeout(timer)
    at[where] += 1
    progress.tell(`${kill + 1} of ${kills} kills, ${taken.size} messages`)
  }
  onStep = () => {}
  const last = start()
  const ended = once(last, 'close')
  for (let waited = 0; [...wanted].some((about) => !ids.has(about)) && waited < 60_000; waited += 100)
    await new Promise((resolve) => setTimeout(resolve, 100))
  last.kill('SIGTERM')
  await ended
} finally {
  receiver.closeAllConnections()
  receiver.close()
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
}
const lost = [...wanted].filter((about) => !ids.has(about))
const twice = [...ids].flatMap(([about, { size }]) => (size > 1 ? [about] : []))
const repeated = [...taken.values()].reduce((sum, times) => sum + times - 1, 0)
progress.end()
for (const about of [...lost, ...twice, ...faults].slice(0, 20)) process.stdout.write(`  ${about}\n`)
process.stdout.write(
  `${kills} kills (${at.arrived} as a message arrived, ${at.answered} after its answer, ${at.random} at random), ${taken.size} messages, ${lost.length} lost, ${twice.length} twice, ${repeated} repeated under the same id, ${faults.length} faults, ${((performance.now() - began) / 1000).toFixed(0)} s\n`,
)
if (lost.length + twice.length + faults.length > 0) process.exitCode = 1
