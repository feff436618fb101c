import { spawn } from 'node:child_process'
import { owned } from './child.ts'

export interface ProcessRun {
  /** Node when left out. */
  readonly program?: string
  readonly args: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Exit codes that count as a run; a benchmark of a failing command measures nothing. */
  readonly codes?: readonly number[]
}

/** Wall-clock milliseconds of one whole process, from spawn to exit, with an environment of its own. */
export function wholeProcess({
  program = process.execPath,
  args,
  cwd,
  env = {},
  codes = [0],
}: ProcessRun): Promise<number> {
  return new Promise((resolve, reject) => {
    const started = performance.now()
    const child = owned(
      spawn(program, args, {
        cwd,
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
        stdio: ['ignore', 'ignore', 'pipe'],
      }),
    )
    let stderr = ''
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => {
      const took = performance.now() - started
      if (codes.includes(code ?? -1)) resolve(took)
      else reject(new Error(`${args.join(' ')} ended with ${code}: ${stderr.slice(0, 500)}`))
    })
  })
}
