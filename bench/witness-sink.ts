import { createServer } from 'node:http'
import path from 'node:path'
import { silentLog, systemClock, systemRandom } from '../src/core/host.ts'
import { secret } from '../src/core/secret.ts'
import { nodeListener } from '../src/daemon/node-listener.ts'
import { handlersOf, openPlatform } from '../src/daemon/platform.ts'
import { learning } from '../src/presets/learning/platform.ts'
import { startWitness } from '../src/witness/witness.ts'

/** Run as a process of its own: a platform, and each of its witnesses but the first at /NUMBER. Takes a folder and the WITNESS_SECRET. */
const [folder = '', secrets = ''] = process.argv.slice(2)
const { web } = handlersOf(
  openPlatform({
    env: { WITNESS_SECRET: secrets, RATE_LIMIT_PER_MINUTE: '1000000' },
    platform: learning,
    log: silentLog,
  }),
)
if (web === undefined) throw new Error('the platform has no web service')
const answer = nodeListener(web)
const witnesses: Awaited<ReturnType<typeof startWitness>>[] = []
const server = createServer((request, response) => {
  const [, number, nonce = ''] = /^\/(\d+)\/vote\?nonce=(.+)/.exec(request.url ?? '') ?? []
  if (number === undefined) return void answer(request, response)
  response.end(JSON.stringify(witnesses[Number(number)]?.vote(nonce)))
})
server.listen(0, '127.0.0.1', async () => {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const host = { clock: systemClock, timer: systemClock, random: systemRandom, log: silentLog }
  for (const [number, one] of secrets.split(',').slice(1).entries()) {
    const [name = '', key = ''] = one.split(':')
    const witness = await startWitness(host, {
      own: { name, secret: secret(key) },
      platform: `http://127.0.0.1:${port}`,
      peers: [],
      dataFolder: path.join(folder, name),
      channels: [],
      roundMs: 86_400_000,
    })
    await witness.round()
    witnesses[number] = witness
  }
  process.stdout.write(`${port}\n`)
})
