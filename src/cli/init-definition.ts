import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DEFINITION_FILES } from '../platform/find.ts'
import { type DefinitionSketch, sketchDefinition } from '../platform/init/sketch.ts'
import { definitionText } from '../platform/init/write.ts'
import { baseGroups } from '../presets/base/groups.ts'
import type { Context } from './context.ts'
import { readText } from './environment.ts'
import { CommandError, EXIT, type ExitCode } from './exit.ts'

const FILE = 'platform.config.ts'

/** Writes a definition to start from, and says what was guessed. */
export async function initDefinition(
  context: Context,
  { from }: { readonly from?: string },
): Promise<ExitCode> {
  const { cwd, stdout } = context
  const there = DEFINITION_FILES.find((name) => existsSync(path.join(cwd, name)))
  if (there !== undefined)
    throw new CommandError(
      EXIT.usage,
      `${there} is there already, and nothing is overwritten: edit it, or move it away.`,
    )
  const source = from ?? ['.env.schema', '.env.example'].find((name) => existsSync(path.join(cwd, name)))
  const sketch = sketchDefinition(source === undefined ? '' : await readText(context, source), baseGroups)
  try {
    writeFileSync(path.join(cwd, FILE), definitionText(sketch, nameOf(cwd)), { flag: 'wx' })
  } catch (error) {
    throw new CommandError(EXIT.usage, `cannot write ${FILE}: check who owns the folder.`, { cause: error })
  }
  stdout.write(`${report(sketch, source).join('\n')}\n`)
  return EXIT.passed
}

function report({ groups, known, skipped }: DefinitionSketch, source: string | undefined): readonly string[] {
  const said = groups.flatMap(({ name, variables, pairs }) => [
    `  ${name}`,
    ...variables.map(
      ({ name: variable, variable: { kind }, because }) => `    ${variable}: ${kind} (${because})`,
    ),
    ...pairs.map((pair) => `    ${pair.join(' and ')}: set together (their names say so)`),
  ])
  return [
    source === undefined
      ? `Wrote ${FILE} without a group: there is no .env.schema or .env.example here.`
      : `Wrote ${FILE} from ${source}.`,
    ...(groups.length === 0 ? [] : ['Guessed; correct what is wrong:', ...said]),
    ...(known.length === 0 ? [] : [`Left out, as the preset has them: ${known.join(', ')}.`]),
    ...(skipped.length === 0 ? [] : [`Left out, as they belong to Node.js: ${skipped.join(', ')}.`]),
    'Next: describe what each group unlocks, then run platformctl env list.',
  ]
}

/** `kiln-school` → `Kiln school`. */
function nameOf(folder: string): string {
  const words =
    path
      .basename(folder)
      .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
      .trim()
      .slice(0, 50) || 'platform'
  return words.charAt(0).toUpperCase() + words.slice(1)
}
