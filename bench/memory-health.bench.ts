import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Benchmark } from './harness.ts'
import { healthServer } from './health-server.ts'

const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))
const LAST_WORDS = `data:text/javascript,process.on('exit', () => process.stdout.write(String(process.resourceUsage().maxRSS)))`

/** Peak resident set of one whole Node process, in MB, as the process itself says at its end. */
async function peakMegabytes(args: readonly string[]): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', LAST_WORDS, ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
  })
  return Number(stdout) / 1024
}

export const benchmark: Benchmark = {
  name: 'memory-health',
  title: 'Peak memory: platformctl health',
  unit: 'MB',
  better: 'lower',
  promises: [],
  bound: 60,
  open: async () => {
    const { url, close } = await healthServer()
    const fetchIt = `fetch('${url}/api/health').then((answer) => answer.json()).then(({ state }) => { process.exitCode = state === 'failing' ? 1 : 0 })`
    return {
      contenders: [
        {
          name: 'platformctl health',
          role: 'ours',
          measure: () => peakMegabytes([bin, 'health', '--service', 'web', '--url', `web=${url}`, '--quiet']),
        },
        { name: 'node -e 0', role: 'floor', measure: () => peakMegabytes(['-e', '0']) },
        { name: 'node -e "fetch(…)"', role: 'peer', measure: () => peakMegabytes(['-e', fetchIt]) },
      ],
      close,
    }
  },
}
