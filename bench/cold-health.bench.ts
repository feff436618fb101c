import { fileURLToPath } from 'node:url'
import type { Benchmark } from './harness.ts'
import { healthServer } from './health-server.ts'
import { wholeProcess } from './process.ts'

const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))

export const benchmark: Benchmark = {
  name: 'cold-health',
  title: 'Cold start: platformctl health',
  unit: 'ms',
  better: 'lower',
  promises: [{ against: 'node -e 0', ratio: 2.2 }],
  rounds: 20,
  open: async () => {
    const { url, close } = await healthServer()
    const args = [bin, 'health', '--service', 'web', '--url', `web=${url}`, '--quiet']
    return {
      contenders: [
        { name: 'platformctl health', role: 'ours', measure: () => wholeProcess({ args }) },
        { name: 'node -e 0', role: 'floor', measure: () => wholeProcess({ args: ['-e', '0'] }) },
      ],
      close,
    }
  },
}
