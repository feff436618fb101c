import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Benchmark } from './harness.ts'

const chunks = fileURLToPath(new URL('../dist/chunks/', import.meta.url))

/** Milliseconds that a fresh process spends on importing a module. */
function importing(url: string): number {
  const script = `const started = performance.now(); await import(${JSON.stringify(url)}); console.log(performance.now() - started)`
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }))
}

export const benchmark: Benchmark = {
  name: 'mail-load',
  title: 'Loading the twelve compiled templates',
  unit: 'ms',
  better: 'lower',
  promises: [{ against: 'the time allowed', ratio: 1 }],
  notes: 'In a fresh process. The daemon loads them at the first send, and never loads MJML or Markdown.',
  async open() {
    const [chunk] = globSync('mails-*.js', { cwd: chunks })
    if (chunk === undefined) throw new Error('dist has no compiled templates: npm run build')
    const url = pathToFileURL(`${chunks}${chunk}`).href
    return {
      contenders: [
        { name: 'the compiled templates', role: 'ours', measure: async () => importing(url) },
        { name: 'an empty module', role: 'floor', measure: async () => importing('data:text/javascript,') },
        { name: 'the time allowed', role: 'floor', measure: async () => 10 },
      ],
    }
  },
}
