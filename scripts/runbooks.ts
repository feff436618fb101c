import { readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { runSteps, sameShape, stepsOf } from './runbooks/session.ts'
import { SETUPS } from './runbooks/setups.ts'

/**
 * `node scripts/runbooks.ts [NAME …]`: runs the commands of the runbooks and writes what they print into them. Output
 * whose shape still fits is left as it is.
 */
const folder = fileURLToPath(new URL('../runbooks', import.meta.url))
const wanted = process.argv.slice(2)
for (const file of (await readdir(folder)).filter((name) => name.endsWith('.md'))) {
  const name = path.basename(file, '.md')
  if (wanted.length > 0 && !wanted.includes(name)) continue
  const text = await readFile(path.join(folder, file), 'utf8')
  const steps = stepsOf(text)
  if (steps.length === 0) continue
  const done = await runSteps(steps, SETUPS[name] ?? 'true')
  const lines = text.split('\n')
  for (const [index, step] of [...steps.entries()].reverse()) {
    const { output, exitCode } = done[index] ?? step
    if (exitCode !== step.exitCode)
      console.log(`${file}:${step.line} exit code ${exitCode}: ${step.command}\n${output.join('\n')}`)
    if (!sameShape(step.output, output)) lines.splice(step.line, step.output.length, ...output)
  }
  await writeFile(path.join(folder, file), lines.join('\n'))
  console.log(`${file}: ${steps.length} commands`)
}
