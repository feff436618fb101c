import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { runSteps, sameShape, stepsOf } from './runbooks/session.ts'
import { PAGES, root, SETUPS } from './runbooks/setups.ts'

/**
 * `node scripts/runbooks.ts [--anew] [PAGE …]`: runs the commands of the runbooks, the README and getting started, and
 * writes what they print into them. A page whose every output still has its shape is left as it is, unless asked for
 * `--anew`; in any other all are written, so that its times and sizes are of one run. Where a page shows `…`, what it
 * left out is put back only when the rest no longer fits.
 */
const anew = process.argv.includes('--anew')
const wanted = process.argv.slice(2).filter((word) => word !== '--anew')
for (const page of PAGES.filter((name) => wanted.length === 0 || wanted.some((one) => name.includes(one)))) {
  const file = path.join(root, page)
  const text = await readFile(file, 'utf8')
  const steps = stepsOf(text)
  if (steps.length === 0) continue
  const done = await runSteps(steps, SETUPS[page] ?? 'true')
  const lines = text.split('\n')
  const fits = steps.every(({ output }, index) => sameShape(output, done[index]?.output ?? []))
  for (const [index, step] of [...steps.entries()].reverse()) {
    const { output, exitCode } = done[index] ?? step
    if (exitCode !== step.exitCode)
      console.log(`${page}:${step.line} exit code ${exitCode}: ${step.command}\n${output.join('\n')}`)
    const shortened = step.output.some((line) => line.trim() === '…')
    if (shortened ? !sameShape(step.output, output) : anew || !fits)
      lines.splice(step.line, step.output.length, ...output)
  }
  await writeFile(file, lines.join('\n'))
  console.log(`${page}: ${steps.length} commands`)
}
