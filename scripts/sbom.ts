import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Writes what is installed with the package, and what is bundled into its files (as their notices say), as CycloneDX. `npm sbom --omit=dev` also leaves out a dependency that a dev
 * dependency needs too (pg, with npm 10 and 11), so the whole tree is asked for and filtered by the lock file.
 */
interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
}

interface Bom {
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

const root = fileURLToPath(new URL('..', import.meta.url))
const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')) as {
  packages: Record<string, { readonly dev?: true; readonly version?: string }>
}
const whole = JSON.parse(
  execFileSync('npm', ['sbom', '--package-lock-only', '--sbom-format=cyclonedx'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'ignore'],
    shell: process.platform === 'win32',
  }),
) as Bom

const installed = new Set(
  Object.entries(packages).flatMap(([place, { dev, version }]) =>
    place === '' || dev === true ? [] : [`${place.split('node_modules/').at(-1)}@${version}`],
  ),
)
const notices = readFileSync(`${root}dist/THIRD-PARTY-NOTICES.txt`, 'utf8')
const bundled = new Set(
  [...notices.matchAll(/^-{80}\n(\S+) (\S+) \(/gm)].map(([, name, version]) => `${name}@${version}`),
)
const isShipped = ({ name, version }: Component) =>
  installed.has(`${name}@${version}`) || bundled.has(`${name}@${version}`)
const components = whole.components.filter(isShipped)
const left = new Set(whole.components.filter((one) => !isShipped(one)).map((one) => one['bom-ref']))
const dependencies = whole.dependencies
  .filter(({ ref }) => !left.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => !left.has(one)) }))
process.stdout.write(`${JSON.stringify({ ...whole, components, dependencies })}\n`)
