import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import packageJson from '../package.json' with { type: 'json' }

/** Everything that must hold before a commit lands; prints only what failed, with its own output. */
const checks: Record<string, string> = {
  types:
    'tsc --incremental --tsBuildInfoFile node_modules/.cache/types.tsbuildinfo && tsc -p tsconfig.browser.json',
  'lint and format': 'biome ci --colors=off --error-on-warnings --log-level=error .',
  'import directions': 'node scripts/directions.ts',
  'made files': 'node scripts/make.ts --check',
  docs: 'node scripts/docs.ts',
  'dead code': 'knip --no-progress',
}

const queue = Object.entries(checks)
let failed = 0

async function worker(): Promise<void> {
  for (let next = queue.shift(); next; next = queue.shift()) {
    const [name, command] = next
    const started = performance.now()
    const { code, output } = await run(command)
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`)
    if (code !== 0) {
      failed += 1
      console.log(output)
    }
  }
}

function run(command: string): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.stderr.on('data', (chunk) => {
      output += chunk
    })
    child.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}

await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, worker))
// Registries and people look for them; there is no repository to name yet.
const missing = ['repository', 'homepage', 'bugs'].filter((field) => !(field in packageJson))
if (missing.length > 0) console.log(`note   package.json has no ${missing.join(', ')}: add what there is`)
console.log(failed === 0 ? `${Object.keys(checks).length} passed, 0 failed` : `${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
