import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { SourceMap, type SourceMapPayload } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** A function on the stack, by its own source and not by the bundle; Node's own modules begin with `node:`. */
export interface Frame {
  readonly name: string
  /** Undefined for V8's own and native code. */
  readonly source: string | undefined
}

/** Milliseconds that were spent with this stack, innermost first. */
export interface Sample {
  readonly stack: readonly Frame[]
  readonly ms: number
}

/**
 * The CPU profile that V8 writes (`--cpu-prof`), as far as it is read here: a tree of calls, and how long each was the
 * innermost.
 */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: {
      readonly functionName: string
      readonly url: string
      /** Both from 0. */
      readonly lineNumber: number
      readonly columnNumber: number
    }
    readonly children?: readonly number[]
  }[]
  readonly samples: readonly number[]
  /** Microseconds, as the deltas. */
  readonly startTime: number
  readonly timeDeltas: readonly number[]
}

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))

/** Runs one Node process under V8's sampling profiler, with an environment of its own. */
export async function profiled(input: {
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly everyMicroseconds: number
  /** Empty; the profile stays there. */
  readonly folder: string
}): Promise<readonly Sample[]> {
  const { args, env = {}, everyMicroseconds, folder } = input
  await run(process.execPath, [...profiling(folder, everyMicroseconds), ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  })
  return profileIn(folder)
}

/** Options of a Node process that writes its profile into this folder when it exits. */
export function profiling(folder: string, everyMicroseconds: number): readonly string[] {
  return ['--cpu-prof', '--cpu-prof-interval', String(everyMicroseconds), '--cpu-prof-dir', folder]
}

/** Microseconds of the clock that profiles are timed by. */
export function profileClock(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

/** The profile in a folder, or what of it lies between two times of `profileClock`. */
export async function profileIn(
  folder: string,
  { from = 0, until = Number.POSITIVE_INFINITY }: { readonly from?: number; readonly until?: number } = {},
): Promise<readonly Sample[]> {
  const [file] = (await readdir(folder)).filter((name) => name.endsWith('.cpuprofile'))
  const { nodes, samples, timeDeltas, startTime } = JSON.parse(
    await readFile(path.join(folder, file ?? ''), 'utf8'),
  ) as CpuProfile
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, frameOf(callFrame)]))
  const spent = new Map<number, number>()
  let at = startTime
  for (const [index, id] of samples.entries()) {
    const took = timeDeltas[index] ?? 0
    at += took
    if (at >= from && at <= until) spent.set(id, (spent.get(id) ?? 0) + took / 1000)
  }
  return [...spent].map(([id, ms]) => {
    const stack: Frame[] = []
    for (let node: number | undefined = id; node !== undefined; node = parents.get(node)) {
      const frame = frames.get(node)
      if (frame) stack.push(frame)
    }
    return { stack, ms }
  })
}

function frameOf(call: CpuProfile['nodes'][number]['callFrame']): Frame {
  const { functionName: name, url, lineNumber, columnNumber } = call
  if (url === '' || url.startsWith('node:')) return { name, source: url || undefined }
  const file = url.startsWith('file:') ? fileURLToPath(url) : url
  const entry = mapOf(file)?.findEntry(lineNumber, columnNumber)
  // Code that the bundler added has no source.
  const original: string | undefined = entry && 'originalSource' in entry ? entry.originalSource : undefined
  const source = original === undefined ? file : path.resolve(path.dirname(file), original)
  return { name, source: source.startsWith(root) ? source.slice(root.length) : source }
}

const maps = new Map<string, SourceMap | undefined>()
function mapOf(file: string): SourceMap | undefined {
  if (!maps.has(file)) {
    const map = `${file}.map`
    const payload = existsSync(map) ? (JSON.parse(readFileSync(map, 'utf8')) as SourceMapPayload) : undefined
    maps.set(file, payload && new SourceMap(payload))
  }
  return maps.get(file)
}
