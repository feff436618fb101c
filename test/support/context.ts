import type { Context } from '../../src/cli/context.ts'
import { systemClock, systemRandom } from '../../src/core/host.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { withValidDocument } from './documents.ts'

/**
 * A context with captured streams and an empty environment; any part can be given. A JSON document that is read from
 * it must fit a published schema.
 */
export function testContext(parts: Partial<Context> = {}): {
  context: Context
  stdout: () => string
  stderr: () => string
} {
  const written = { stdout: '', stderr: '' }
  const stream = (name: 'stdout' | 'stderr') => ({
    write(text: string) {
      written[name] += text
      return true
    },
  })
  return {
    context: {
      platform: learning,
      env: {},
      cwd: process.cwd(),
      stdin: (async function* () {})(),
      stdout: stream('stdout'),
      stderr: stream('stderr'),
      colour: { stdout: false, stderr: false },
      clock: systemClock,
      random: systemRandom,
      signal: new AbortController().signal,
      ...parts,
    },
    stdout: () => withValidDocument(written.stdout),
    stderr: () => written.stderr,
  }
}
