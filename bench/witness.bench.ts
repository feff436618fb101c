import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Agent, request } from 'undici'
import { silentLog, systemClock, systemRandom } from '../src/core/host.ts'
import { secret } from '../src/core/secret.ts'
import { tokenOf } from '../src/core/witness.ts'
import { askPlatform } from '../src/witness/ask.ts'
import { startWitness } from '../src/witness/witness.ts'
import type { Benchmark } from './harness.ts'
import { startSink } from './sink.ts'

const PEERS = 10
const ROUNDS = 100
const NONCE = 'a-nonce-of-24-characters'
const SAME_REQUESTS = 'undici, the same requests'
const NAMES = Array.from({ length: PEERS + 1 }, (_, number) => `w${number}`)
const secretOf = (name: string) => `a-secret-of-thirty-two-characters-${name}`

export const benchmark: Benchmark = {
  name: 'witness',
  title: `A round of a witness with ${PEERS} peers`,
  unit: 'ms',
  better: 'lower',
  promises: [{ against: SAME_REQUESTS, ratio: 2.5 }],
  rounds: 10,
  notes: `Means of ${ROUNDS} rounds. Ours asks the platform and all peers at once, verifies each signature, judges, and records the round in a file and in SQLite. undici asks the same servers, a new connection each, as what is asked every 30 s needs, and verifies and records nothing.`,
  async open(opened) {
    const folder = opened.adopt(await mkdtemp(path.join(tmpdir(), 'platformctl-bench-')), (made) =>
      rm(made, { recursive: true }),
    )
    const secrets = NAMES.map((name) => `${name}:${secretOf(name)}`).join()
    const sink = opened.adopt(await startSink('./witness-sink.ts', [folder, secrets]), (one) => one.close())
    const platform = `http://127.0.0.1:${sink.port}`
    const peers = Array.from({ length: PEERS }, (_, number) => `${platform}/${number}`)
    const own = { name: 'w0', secret: secret(secretOf('w0')) }
    const witness = await startWitness(
      { clock: systemClock, timer: systemClock, random: systemRandom, log: silentLog },
      { own, platform, peers, dataFolder: path.join(folder, 'w0'), channels: [], roundMs: 86_400_000 },
    )
    opened.defer(() => witness.stop())
    // The first round gets the keys with which the second verifies the votes.
    await witness.round()
    await witness.round()
    const { view, peers: heard } = witness.known()
    const silent = Object.values(heard).filter((why) => why !== undefined)
    if (view !== 'reachable' || silent.length > 0) throw new Error(`${view}; not heard: ${silent.join(', ')}`)

    const never = new AbortController().signal
    const asked = { at: Date.now(), nonce: NONCE, have: undefined, outage: undefined }
    const ask = { monotonic: systemClock.monotonic, signal: never }
    const found = await askPlatform(platform, own, asked, ask)
    if ('reason' in found) throw new Error(found.reason)
    const token = tokenOf(
      JSON.stringify({ name: own.name, ...asked, have: found.snapshot?.signature }),
      own.secret,
    )
    // Without pipelining, undici closes each connection after its answer.
    const dispatcher = opened.adopt(new Agent({ pipelining: 0 }), (agent) => agent.close())
    const get = async (url: string, headers = {}) => {
      const { statusCode, body } = await request(url, { dispatcher, headers })
      if (statusCode !== 200) throw new Error(`${url} answers with ${statusCode}`)
      await body.json()
    }
    const mean = async (round: () => Promise<unknown>) => {
      const began = performance.now()
      for (let count = 0; count < ROUNDS; count += 1) await round()
      return (performance.now() - began) / ROUNDS
    }
    return {
      contenders: [
        { name: 'the witness', role: 'ours', measure: () => mean(() => witness.round()) },
        {
          name: SAME_REQUESTS,
          role: 'floor',
          measure: () =>
            mean(() =>
              Promise.all([
                get(`${platform}/api/witness`, { authorization: `Bearer ${token}` }),
                ...peers.map((peer) => get(`${peer}/vote?nonce=${NONCE}`)),
              ]),
            ),
        },
      ],
    }
  },
}
