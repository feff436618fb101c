import { readFile } from 'node:fs/promises'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { Benchmark } from './harness.ts'

const BOUND = 6 * 1024

export const benchmark: Benchmark = {
  name: 'browser-bundle',
  title: 'What a page loads from platformctl/browser',
  unit: 'bytes',
  better: 'lower',
  promises: [],
  bound: BOUND,
  rounds: 1,
  notes:
    'Events, buffer, opt-out and reporter, gzip -9. The error-reporting SDK is a separate file, loaded only if a DSN is set.',
  open: async () => {
    const bytes = await readFile(new URL('../dist/browser.js', import.meta.url))
    const size = (of: Uint8Array) => () => Promise.resolve(of.length)
    return {
      contenders: [
        { name: 'gzip -9', role: 'ours', measure: size(gzipSync(bytes, { level: 9 })) },
        { name: 'brotli', role: 'peer', measure: size(brotliCompressSync(bytes)) },
        { name: 'not compressed', role: 'peer', measure: size(bytes) },
      ],
    }
  },
}
