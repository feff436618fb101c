import { existsSync, readFileSync } from 'node:fs'

const PEERS = new URL('./peers/', import.meta.url)

/** A sentence that names what is missing to run a benchmark and how to install it; undefined if nothing is. */
export function missing(names: readonly string[], peers: URL = PEERS): string | undefined {
  const needing = names.filter((name) => usesPeers(new URL(`./${name}.bench.ts`, import.meta.url)))
  if (needing.length === 0 || peerVersions(peers) !== undefined) return undefined
  return `the packages that ${needing.join(', ')} ${needing.length === 1 ? 'compares' : 'compare'} with are not installed. Run: npm run bench:peers`
}

/** Name and installed version of each package in the folder of peers; undefined when one is not installed. */
export function peerVersions(peers: URL = PEERS): Readonly<Record<string, string>> | undefined {
  const pinned = read(new URL('package.json', peers)) as { dependencies: Record<string, string> }
  const versions: Record<string, string> = {}
  for (const name of Object.keys(pinned.dependencies)) {
    const file = new URL(`node_modules/${name}/package.json`, peers)
    if (!existsSync(file)) return undefined
    versions[name] = (read(file) as { version: string }).version
  }
  return versions
}

/** True when the file, or one of this folder that it imports or starts, names the peers. */
export function usesPeers(file: URL, seen = new Set<string>()): boolean {
  if (seen.has(file.href) || !existsSync(file)) return false
  seen.add(file.href)
  const text = readFileSync(file, 'utf8')
  if (/'\.\/peers\.ts'|[`']peers\/|, 'peers'\)/.test(text)) return true
  return [...text.matchAll(/'(\.\/[\w-]+(?:\.bench)?\.ts)'/g)].some(([, next]) =>
    usesPeers(new URL(next ?? '', file), seen),
  )
}

function read(file: URL): unknown {
  return JSON.parse(readFileSync(file, 'utf8'))
}
