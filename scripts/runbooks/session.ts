import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** How often a wait looks before all is up depends on the machine. */
const PROGRESS = /^waiting, \d+ s left/

/** A command of a runbook's console blocks, and what it wrote when it was run. */
export interface RecordedCommand {
  /** Line number of the prompt, from 1. */
  readonly line: number
  readonly command: string
  readonly output: readonly string[]
  readonly exitCode: number
}

/** The commands in a text's `console` blocks: a line with a prompt, and the output under it. */
export function stepsOf(text: string): RecordedCommand[] {
  const steps: (RecordedCommand & { output: string[] })[] = []
  let inside = false
  for (const [index, line] of text.split('\n').entries()) {
    if (line.startsWith('```')) inside = line === '```console'
    else if (inside && line.startsWith('$ ')) {
      const exitCode = Number(/# exit code (\d+)$/.exec(line)?.[1] ?? 0)
      steps.push({ line: index + 1, command: line.slice(2), output: [], exitCode })
    } else if (inside) steps.at(-1)?.output.push(line)
  }
  return steps
}

/**
 * Runs commands one after the other in one shell, on a machine of their own: a network with nothing but loopback, and
 * empty folders at /run, /srv, /var/lib and /var/backups. `platformctl` is the built one.
 */
export async function runSteps(
  steps: readonly RecordedCommand[],
  setup: string,
): Promise<readonly RecordedCommand[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-runbook-'))
  try {
    await mkdir(path.join(folder, 'bin'))
    const shim = `#!/bin/sh\nexec '${process.execPath}' -- '${root}bin/platformctl.js' "$@"\n`
    await writeFile(path.join(folder, 'bin/platformctl'), shim, { mode: 0o755 })
    await symlink(process.execPath, path.join(folder, 'bin/node'))
    const script = [
      'for folder in /run /srv /var/lib /var/backups; do mount -t tmpfs tmpfs "$folder"; done',
      'ip link set lo up',
      'mkdir -p /srv/platform /var/lib/platformctl && cd /srv/platform',
      `ln -s '${root}node_modules' node_modules`,
      `(${setup}\n) >"$RUN/setup" 2>&1 || exit 99`,
      ...steps.map(
        ({ command }, index) =>
          `{ ${command}\n} >"$RUN/${index}" 2>&1 </dev/null; echo $? >"$RUN/${index}.code"`,
      ),
      'kill $(jobs -p) 2>/dev/null; wait',
    ].join('\n')
    await promisify(execFile)(
      'unshare',
      ['--user', '--map-root-user', '--mount', '--net', 'bash', '-c', script],
      {
        cwd: folder,
        env: {
          PATH: `${folder}/bin:${process.env.PATH ?? ''}:/usr/sbin`,
          HOME: folder,
          RUN: folder,
          NODE: process.execPath,
          SEED: `${root}scripts/runbooks/seed.ts`,
          LANG: 'C.UTF-8',
          NO_UPDATE_NOTIFIER: '1',
        },
        timeout: 90_000,
      },
    ).catch(async (error: unknown) => {
      const said = await readFile(path.join(folder, 'setup'), 'utf8').catch(() => '')
      throw new Error(`the runbook could not be run: ${said}`, { cause: error })
    })
    return await Promise.all(
      steps.map(async (step, index) => ({
        ...step,
        output: (await readFile(path.join(folder, String(index)), 'utf8'))
          .replace(/\n$/, '')
          .split('\n')
          .filter((line, _, all) => (all.length > 1 || line !== '') && !PROGRESS.test(line)),
        exitCode: Number(await readFile(path.join(folder, `${index}.code`), 'utf8')),
      })),
    )
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** A line without what differs from one run to the next: times, sizes, process ids and random ids, the width of columns. */
export function shapeOf(line: string): string {
  return line
    .replace(/\d{4}-?\d\d-?\d\dT\d\d:?\d\d:?\d\d(?:\.\d+)?Z/g, 'TIME')
    .replace(/\d{4}-\d\d-\d\d/g, 'DATE')
    .replace(/(?<![:\d])\d\d:\d\d(?::\d\d(?:\.\d+)?)?/g, 'TIME')
    .replace(/\/tmp\/\S+/g, 'TMP')
    .replace(/[·▁▂▃▄▅▆▇█]+/g, 'BARS')
    .replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'ID')
    .replace(/\b(?=[\w-]*\d)[\w-]{16,}\b/g, 'ID')
    .replace(/\d+(?:\.\d+)? ?(?:ms|s|min|h|d|B|kB|MB|GB)\b/g, 'SIZE')
    .replace(/\b(process|mail_minute|mail_day) \d+/g, '$1 N')
    .replace(/("durationMs":|,)\d+(?:\.\d+)?(?=[,}\]])/g, '$1N')
    .replace(/\s+/g, ' ')
    .trim()
}

/** Said once the daemon has left its pointer, which a command right after its start comes before or after. */
const ACTING_ON = /^platformctl: acting on the daemon that runs here:/

/** Does what was written have the shape of what the page shows? A line `…` on the page stands for any lines. */
export function sameShape(shown: readonly string[], written: readonly string[]): boolean {
  const lasting = (lines: readonly string[]) => lines.filter((line) => !ACTING_ON.test(line))
  return fits(lasting(shown), lasting(written))
}

function fits(shown: readonly string[], written: readonly string[]): boolean {
  const [first, ...rest] = shown
  if (first === undefined) return written.length === 0
  if (first.trim() === '…')
    return Array.from({ length: written.length + 1 }, (_, skip) => skip).some((skip) =>
      fits(rest, written.slice(skip)),
    )
  const [line, ...after] = written
  return line !== undefined && shapeOf(first) === shapeOf(line) && fits(rest, after)
}
