import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Benchmark } from './harness.ts'
import { wholeProcess } from './process.ts'
import { bareServer, daemonServer } from './servers.ts'

const REPLICAS = 10
const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))
const undici = import.meta.resolve('undici')
const token = 'a-deep-token-of-thirty-two-bytes-and'
const nonce = '00112233445566778899aabbccddeeff'
const ENV = {
  HEALTH_DEEP_TOKEN: token,
  EMAIL_DISPATCH_SECRET: 'a-dispatch-secret-of-thirty-two-b',
  NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
  LOG_LEVEL: 'warn',
  RATE_LIMIT_PER_MINUTE: '1000000',
}
const THE_ANSWERS = 'undici, asking the same ten'

/** A process that gets all addresses at once and reads the answers as JSON. */
const getting = (urls: readonly string[]) =>
  wholeProcess({
    args: [
      '--input-type=module',
      '-e',
      `import { request } from ${JSON.stringify(undici)}
const headers = { accept: 'application/json', authorization: 'Bearer ${token}' }
await Promise.all(${JSON.stringify(urls)}.map(async (url) => {
  const { statusCode, body } = await request(url, { headers })
  if (statusCode !== 200 || !(await body.json()).variables) throw new Error('it answers with ' + statusCode)
}))
process.exit()`,
    ],
  })

export const benchmark: Benchmark = {
  name: 'env-verify',
  title: `env verify of ${REPLICAS} replicas`,
  unit: 'ms',
  better: 'lower',
  promises: [{ against: THE_ANSWERS, ratio: 1.45 }],
  rounds: 10,
  notes:
    'Whole processes. The replicas are daemons on this machine, each deriving slow fingerprints of two secrets; the command derives those of its file once for all ten, beside them. The same bytes come ready-made from bare servers.',
  async open(opened) {
    const folder = opened.adopt(await mkdtemp(path.join(tmpdir(), 'platformctl-bench-')), (made) =>
      rm(made, { recursive: true }),
    )
    const file = path.join(folder, 'replicas.env')
    const lines = Object.entries(ENV).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(file, lines.join(''))
    const urls: string[] = []
    const made: string[] = []
    for (let n = 0; n < REPLICAS; n += 1) {
      const { port } = opened.adopt(await daemonServer(ENV), (server) => server.close())
      urls.push(`http://127.0.0.1:${port}`)
    }
    const asked = urls.map((url) => `${url}/api/configuration?nonce=${nonce}`)
    for (const url of asked) {
      const { port } = opened.adopt(await bareServer(url, { authorization: `Bearer ${token}` }), (server) =>
        server.close(),
      )
      made.push(`http://127.0.0.1:${port}`)
    }
    return {
      contenders: [
        {
          name: 'platformctl env verify',
          role: 'ours',
          measure: () =>
            wholeProcess({ args: [bin, 'env', 'verify', '--env-file', file, '--url', `web=${urls.join()}`] }),
        },
        { name: THE_ANSWERS, role: 'floor', measure: () => getting(asked) },
        { name: 'undici, the same bytes ready-made', role: 'floor', measure: () => getting(made) },
      ],
    }
  },
}
