import { DIALECTS, readAs } from '../core/env/dialects/read.ts'
import { evaluateGroups, rawValue } from '../core/env/environment.ts'
import { parseEnvFile } from '../core/env/reader.ts'
import type { Context } from './context.ts'
import { loadEnvironment, readTextFile } from './environment.ts'
import { EXIT, type ExitCode } from './exit.ts'
import { printJson } from './print.ts'
import { loadPaint } from './terminal.ts'

/** Compares two files: names, whether values are the same, and the states of groups; never a value. */
export async function diffEnvironments(
  context: Context,
  files: readonly [string, string],
  format: 'text' | 'json',
): Promise<ExitCode> {
  const { contract } = context.platform
  const [a, b] = [await envOf(context, files[0]), await envOf(context, files[1])]
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort()
  const variables = names.flatMap((name) => {
    const [inA, inB] = [rawValue(a, name), rawValue(b, name)]
    if (inA === inB) return []
    const state =
      inA === undefined ? 'only in the second' : inB === undefined ? 'only in the first' : 'different values'
    return [{ name, state, known: contract.find(name) !== undefined }] as const
  })
  const [statesA, statesB] = [evaluateGroups(contract, a).states, evaluateGroups(contract, b).states]
  const groups = contract.groups
    .map(({ name }) => ({ name, first: statesA.get(name), second: statesB.get(name) }))
    .filter(({ first, second }) => first !== second)
  if (format === 'json') {
    printJson(context, 'env diff', { same: variables.length === 0, groups, variables })
  } else {
    const paint = await loadPaint(context.colour.stdout)
    const sign = {
      'only in the first': paint.red('−'),
      'only in the second': paint.green('+'),
      'different values': paint.yellow('~'),
    }
    for (const { name, first, second } of groups)
      context.stdout.write(`${paint.bold(name)}  ${first} → ${second}\n`)
    if (groups.length > 0) context.stdout.write('\n')
    for (const { name, state, known } of variables)
      context.stdout.write(
        `${sign[state]} ${name.padEnd(40)}${state}${known ? '' : paint.dim(', not in the contract')}\n`,
      )
    context.stdout.write(
      variables.length === 0 ? 'the same\n' : `\n${variables.length} of ${names.length} variables differ\n`,
    )
  }
  return variables.length === 0 ? EXIT.passed : EXIT.failed
}

async function envOf(context: Context, file: string) {
  return (await loadEnvironment(context, [file], { withProcess: false })).env
}

type DialectClass = 'A' | 'B' | 'C' | 'D' | 'E' | 'F' | '–' | 'refused'

/** A table of names against readers: the same letter is the same value, a dash is no value at all. */
export async function compareDialects(
  context: Context,
  file: string,
  format: 'text' | 'json',
): Promise<ExitCode> {
  const text = await readTextFile(context, file)
  const read = DIALECTS.map((dialect) => ({ dialect, ...readAs(dialect, text) }))
  // Only names that our own reader finds or that we know: what other readers take for a name may be a line of a key.
  const found = parseEnvFile(context.platform.contract, text, file).assignments.map(({ name }) => name)
  const known = read.flatMap(({ values }) =>
    [...values.keys()].filter((name) => context.platform.contract.find(name)),
  )
  const names = [...new Set([...found, ...known])].sort()
  const rows = names.map((name) => ({
    name,
    readers: verdicts(read.map(({ values, rejected }) => (rejected ? null : values.get(name)))),
  }))
  // A reader that refuses the file is reported once, below. Repeated for each name, it would hide the real differences.
  const differing = rows.filter(({ readers }) => new Set(readers.filter((one) => one !== 'refused')).size > 1)
  const rejected = read.filter((one) => one.rejected)
  const refusing = rejected.map(({ dialect }) => dialect)
  if (format === 'json') {
    const named = rows.map(({ name, readers }) => ({
      name,
      readers: Object.fromEntries(DIALECTS.map((dialect, index) => [dialect, readers[index]])),
    }))
    printJson(context, 'env dialects', { refusing, names: named })
  } else {
    const paint = await loadPaint(context.colour.stdout)
    const width = Math.max(4, ...differing.map(({ name }) => name.length)) + 2
    const cell = (verdict: string, index: number) =>
      index === DIALECTS.length - 1 ? verdict : verdict.padEnd((DIALECTS[index]?.length ?? 0) + 2)
    if (differing.length > 0) {
      context.stdout.write(`${paint.bold('name'.padEnd(width) + DIALECTS.join('  '))}\n`)
      for (const { name, readers } of differing) {
        context.stdout.write(
          `${name.padEnd(width)}${readers.map((verdict, index) => (verdict === 'A' ? cell(verdict, index) : paint.yellow(cell(verdict, index)))).join('')}\n`,
        )
      }
      context.stdout.write(
        paint.dim(
          '\nThe same letter is the same value; – is none. $(…) is run by the real dotenv-expand, and never here.\n',
        ),
      )
    }
    const because = rejected.map(
      ({ dialect, rejectedLine = 1 }) => `${dialect} (because of line ${rejectedLine})`,
    )
    if (because.length > 0) context.stdout.write(`${paint.red('refused by')} ${because.join(', ')}\n`)
    context.stdout.write(
      `${names.length - differing.length} of ${names.length} names are read alike by all${refusing.length > 0 ? ' others' : ''}\n`,
    )
  }
  return differing.length === 0 && refusing.length === 0 ? EXIT.passed : EXIT.failed
}

/** Values become letters in the order in which they first appear, so that none is shown. `null`: the file is refused. */
function verdicts(values: readonly (string | undefined | null)[]): DialectClass[] {
  const letters: string[] = []
  return values.map((value) => {
    if (value === null) return 'refused'
    if (value === undefined) return '–'
    if (!letters.includes(value)) letters.push(value)
    return (['A', 'B', 'C', 'D', 'E', 'F'] as const)[letters.indexOf(value)] ?? 'F'
  })
}
