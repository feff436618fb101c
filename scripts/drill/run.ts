import { execFile } from 'node:child_process'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Result } from './cell.ts'
import type { Cell } from './product.ts'
import { OUTSIDE } from './world.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const LONGEST_MS = 30 * 60_000
const ISOLATED = ['--mount', '--net', '--pid', '--fork', '--kill-child', 'bash', '-c']

/** Whether this machine lets a process have mounts, a network and processes of its own, as a container may not. */
export const canIsolate = (): Promise<boolean> =>
  promisify(execFile)('unshare', [
    ...ISOLATED,
    'mount -t proc proc /proc && mount -t tmpfs tmpfs /srv && PATH=$PATH:/usr/sbin ip link add outside type veth peer name far',
  ]).then(
    () => true,
    () => false,
  )

/** Runs cells, some at once, each on a machine of its own that ends with it. */
export async function runCells(
  cells: readonly Cell[],
  {
    atOnce,
    limitMs,
    transcribes = false,
  }: {
    readonly atOnce: number
    readonly limitMs?: number | undefined
    /** Whether results say what an operator has read. */
    readonly transcribes?: boolean
  },
  onResult: (result: Result, seconds: number) => void,
): Promise<void> {
  // What Node has compiled, for all of them.
  const cache = await mkdtemp(path.join(tmpdir(), 'platformctl-drill-'))
  await chown(cache, 65_534, 65_534)
  // What takes longest is begun first.
  const rank = ({ component, how }: Cell) => (how === 'flapping' ? 0 : component === 'mail' ? 1 : 2)
  const left = cells.toSorted((a, b) => rank(a) - rank(b))
  const ends = limitMs === undefined ? undefined : performance.now() + limitMs
  const worker = async () => {
    for (let cell = left.shift(); cell; cell = left.shift()) {
      const began = performance.now()
      const leftMs = ends === undefined ? undefined : Math.max(0, ends - began)
      const result = await runCell(cell, { cache, leftMs, transcribes })
      onResult(result, (performance.now() - began) / 1000)
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.min(atOnce, cells.length) }, worker))
  } finally {
    await rm(cache, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function runCell(
  { name }: Cell,
  {
    cache,
    leftMs,
    transcribes,
  }: { readonly cache: string; readonly leftMs: number | undefined; readonly transcribes: boolean },
): Promise<Result> {
  const script = `set -e
mount -t proc proc /proc
ip link set lo up
# An address that is not loopback.
ip link add outside type veth peer name far
ip addr add ${OUTSIDE}/32 dev outside
ip link set outside up
ip link set far up
for folder in /srv /var/lib /var/backups; do mount -t tmpfs -o mode=755 tmpfs "$folder"; done
echo nameserver 127.0.0.1 > /srv/resolv.conf
mount --bind /srv/resolv.conf "$(readlink -f /etc/resolv.conf)"
mkdir -p /srv/app /srv/cache
mount --bind '${root}' /srv/app
mount --bind '${cache}' /srv/cache
node=/srv/app/node_modules/node/bin/node
[ -x $node ] || node='${process.execPath}'
cd /srv/app
exec $node scripts/drill/cell.ts '${name}'`
  const failed = (why: string): Result => ({ cell: name, wrong: [why], printed: [] })
  try {
    const { stdout } = await promisify(execFile)('unshare', [...ISOLATED, script], {
      env: {
        PATH: `${process.env.PATH ?? ''}:/usr/sbin`,
        HOME: '/root',
        DRILL_CACHE: '/srv/cache',
        ...(transcribes && { DRILL_TRANSCRIBES: '' }),
        ...(leftMs !== undefined && { DRILL_LIMIT_MS: String(Math.round(leftMs)) }),
      },
      timeout: LONGEST_MS,
      maxBuffer: 64 * 1024 * 1024,
    })
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Result
  } catch (error) {
    return failed(`the cell could not be run: ${error instanceof Error ? error.message : error}`)
  }
}
