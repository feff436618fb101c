import { execFileSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import packageJson from '../package.json' with { type: 'json' }

/**
 * Bundles `src` into `dist`: the CLI with one chunk a command, the server, and the parts for boot and browser.
 * A package under `dependencies` stays an import; one under `devDependencies` is bundled.
 */
const root = fileURLToPath(new URL('..', import.meta.url))
const external = Object.keys(packageJson.dependencies).map((name) => new RegExp(`^${name}($|/)`))
const server = {
  'cli/main': 'src/cli/main.ts',
  index: 'src/daemon/index.ts',
  env: 'src/env.ts',
  reporting: 'src/reporting.ts',
}
const browser = { browser: 'src/browser/index.ts' }

const existing = (entries: Record<string, string>) =>
  Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(`${root}${file}`)))

async function bundle(input: Record<string, string>, platform: 'node' | 'browser'): Promise<void> {
  if (Object.keys(input).length === 0) return
  const build = await rolldown({ cwd: root, input, platform, external: platform === 'node' ? external : [] })
  await build.write({
    dir: 'dist',
    format: 'esm',
    sourcemap: true,
    minify: platform === 'browser',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
  })
  await build.close()
}

rmSync(`${root}dist`, { recursive: true, force: true })
await bundle(existing(server), 'node')
await bundle(existing(browser), 'browser')
if (process.argv.includes('--types')) {
  execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
}
