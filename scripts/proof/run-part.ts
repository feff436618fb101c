import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { finished } from 'node:stream/promises'
import type { Part } from './parts.ts'
import { type Measured, measuredSchema, type PartResult } from './results.ts'

/** A part whose group does not end by itself is killed after this. */
const GRACE_MS = 10_000
/** The number of output lines reported for a failed part. */
const LAST_WORDS = 20

export interface RunOptions {
  readonly root: string
  /** Everything that it prints is kept there. */
  readonly log: string
  readonly limitMs: number
  readonly signal: AbortSignal
  readonly onLine: (line: string) => void
}

export type Ran = Pick<PartResult, 'verdict' | 'reason' | 'lines' | 'measured'>

/** Runs a part in a process group and a temporary folder of its own: nothing of it is left. Undefined when it was stopped. */
export async function runPart(part: Part, options: RunOptions): Promise<Ran | undefined> {
  const { root, signal, limitMs, onLine } = options
  const temporary = await mkdtemp(path.join(tmpdir(), 'proof-'))
  // PostgreSQL runs as another user, who must be able to enter.
  await chmod(temporary, 0o755)
  const log = createWriteStream(options.log)
  const [figures, words]: [string[], string[]] = [[], []]
  try {
    const [program = '', ...args] = part.command
    const child = spawn(program, args, {
      cwd: root,
      env: {
        ...process.env,
        // The Node that this runs on, also for the scripts that say just `node`.
        PATH: `${path.dirname(process.execPath)}${path.delimiter}${process.env.PATH ?? ''}`,
        TMPDIR: temporary,
        ...part.env,
      },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const killGroup = (name: NodeJS.Signals) => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, name)
      } catch {
        // Nothing of it is left.
      }
    }
    let late = false
    let killing: NodeJS.Timeout | undefined
    const stop = () => {
      killGroup('SIGINT')
      killing = setTimeout(() => killGroup('SIGKILL'), GRACE_MS)
    }
    const limit = setTimeout(() => {
      late = true
      stop()
    }, limitMs)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    const read = (lines: string[], stream: NodeJS.ReadableStream) =>
      createInterface({ input: stream }).on('line', (line) => {
        log.write(`${line}\n`)
        if (line.trim() === '') return
        onLine(line)
        for (const kept of new Set([lines, words])) {
          kept.push(line)
          if (kept.length > LAST_WORDS) kept.shift()
        }
      })
    read(figures, child.stdout)
    read(words, child.stderr)
    // Kill processes that the command left behind, because they would hold its output open.
    child.once('exit', () => killGroup('SIGKILL'))
    const ended = await new Promise<string | undefined>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('close', (code, by) => resolve(code === 0 ? undefined : `it ended with ${code ?? by}`))
    })
    clearTimeout(limit)
    clearTimeout(killing)
    signal.removeEventListener('abort', stop)
    if (signal.aborted) return undefined
    if (late) return failed(`it did not end within ${Math.round(limitMs / 60_000)} minutes`, words)
    if (ended !== undefined) return failed(ended, words)
    const lines = figures.slice(figures.length - Math.min(part.figures, figures.length))
    if (part.result === undefined) return { verdict: 'passed', lines }
    const measured = await readMeasured(path.resolve(root, part.result))
    if (measured === undefined) return failed(`it left no result in ${part.result}`, words)
    const wide = measured.ratios.filter(({ promised, tooWide }) => promised !== undefined && tooWide)
    if (wide.length === 0) return { verdict: 'passed', lines, measured }
    const against = wide.map((ratio) => ratio.against).join(', ')
    return {
      ...failed(`the spread beside ${against} is too wide to quote; measure again on a quiet machine`, []),
      measured,
    }
  } finally {
    log.end()
    await finished(log)
    await rm(temporary, { recursive: true, force: true, maxRetries: 3 })
  }
}

const failed = (reason: string, lines: readonly string[]): Ran => ({
  verdict: 'failed',
  reason,
  lines: [...lines],
})

async function readMeasured(file: string): Promise<Measured | undefined> {
  try {
    return measuredSchema.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch {
    return undefined
  }
}
