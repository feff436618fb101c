import { mkdir } from 'node:fs/promises'
import { loadavg } from 'node:os'
import path from 'node:path'
import { durationText } from '../../src/core/durations.ts'
import { type Part, typed } from './parts.ts'
import { dropResult, keyOf, type PartResult, readResult, writeResult } from './results.ts'
import { type Ran, runPart } from './run-part.ts'

/** A part and what is known of it: a result of another code is stale, and counts as none. */
export interface Known {
  readonly part: Part
  readonly key: string
  readonly result: PartResult | undefined
  readonly stale: boolean
}

export async function knownOf(parts: readonly Part[], root: string, folder: string): Promise<Known[]> {
  const digests = new Map<string, Promise<string>>()
  return Promise.all(
    parts.map(async (part) => {
      const [key, result] = await Promise.all([keyOf(part, root, digests), readResult(folder, part.name)])
      const current = result?.key === key
      return { part, key, result: current ? result : undefined, stale: result !== undefined && !current }
    }),
  )
}

export interface ProveOptions {
  readonly parts: readonly Part[]
  readonly root: string
  /** Where the results and logs of the parts are kept. */
  readonly folder: string
  readonly fresh: boolean
  readonly commit: string
  readonly limitMs: number
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

/**
 * Runs the parts that have not passed with this code, one after the other, and keeps each result as soon as it is there.
 * A part that fails holds up none; one that is stopped leaves nothing.
 */
export async function prove(options: ProveOptions): Promise<'passed' | 'failed' | 'stopped'> {
  const { parts, root, folder, fresh, commit, limitMs, signal, say } = options
  await mkdir(folder, { recursive: true })
  if (fresh) for (const { name } of parts) await dropResult(folder, name)
  const known = await knownOf(parts, root, folder)
  const done = known.filter(({ result }) => result?.verdict === 'passed')
  if (done.length > 0)
    say(
      `${done.length} of ${parts.length} parts have passed with this code already (--fresh runs them again)`,
    )
  let verdict: 'passed' | 'failed' = 'passed'
  for (const [index, { part, result }] of known.entries()) {
    if (result?.verdict === 'passed') continue
    if (signal.aborted) return 'stopped'
    const at = `[${index + 1}/${parts.length}] ${part.name}`
    say(`${at}: ${typed(part)}`)
    const key = await keyOf(part, root)
    const began = new Date().toISOString()
    const load = loadavg()[0] ?? 0
    const from = performance.now()
    const ran = await runPart(part, {
      root,
      log: path.join(folder, `${part.name.replaceAll('/', '-')}.log`),
      limitMs,
      signal,
      onLine: (line) => say(`    ${line}`),
    })
    const took = (performance.now() - from) / 1000
    if (ran === undefined) {
      say(
        `${at} stopped after ${durationText(1000 * Math.round(took))}; what is done is kept, and npm run proof goes on from here`,
      )
      return 'stopped'
    }
    // The code changed during the run, so the result is valid for neither version.
    const moved = (await keyOf(part, root)) !== key
    const judged: Ran = moved
      ? { verdict: 'failed', reason: 'its code changed while it ran', lines: ran.lines }
      : ran
    await writeResult(folder, {
      part: part.name,
      key,
      commit,
      began,
      seconds: Math.round(took * 10) / 10,
      load: Math.round(load * 100) / 100,
      ...judged,
    })
    say(
      `${at} ${judged.verdict} in ${durationText(1000 * Math.round(took))}${judged.reason === undefined ? '' : `: ${judged.reason}`}`,
    )
    if (judged.verdict === 'failed') verdict = 'failed'
  }
  return verdict
}
