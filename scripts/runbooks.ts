import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { runSteps, sameShape, stepsOf } from './runbooks/session.ts'
import { PAGES, root, SETUPS } from './runbooks/setups.ts'

/**
 * `node scripts/runbooks.ts [PAGE …]`: runs the commands of the runbooks, the README and getting started, and writes
 * what they print into them. Output whose shape still fits is left as it is.
 */
const wanted = process.argv.slice(2)
for (const page of PAGES.filter((name) => wanted.length === 0 || wanted.some((one) => name.includes(one)))) {
  const file = path.join(root, page)
  const text = await readFile(file, 'utf8')
  const steps = stepsOf(text)
  if (steps.length === 0) continue
  const done = await runSteps(steps, SETUPS[page] ?? 'true')
  const lines = text.split('\n')
  for (const [index, step] of [...steps.entries()].reverse()) {
    const { output, exitCode } = done[index] ?? step
    if (exitCode !== step.exitCode)
      console.log(`${page}:${step.line} exit code ${exitCode}: ${step.command}\n${output.join('\n')}`)
    if (!sameShape(step.output, output)) lines.splice(step.line, step.output.length, ...output)
  }
  await writeFile(file, lines.join('\n'))
  console.log(`${page}: ${steps.length} commands`)
}
