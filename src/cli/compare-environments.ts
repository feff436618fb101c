import { DIALECTS } from '../core/env/dialects/dialect.ts'
import { readAs } from '../core/env/dialects/read.ts'
import { parseEnvFile } from '../core/env/reader.ts'
import { evaluateGroups, rawValue } from '../core/env/settings.ts'
import type { Answer } from './command.ts'
import { type Context, EXIT, loadPaint } from './context.ts'
import { loadEnvironment, readTextFile } from './environment.ts'

/** Compares two files: names, whether values are the same, and the states of groups; never a value. */
export async function diffEnvironments(context: Context, files: readonly [string, string]) {
  const { contract } = context.platform
  const envOf = async (file: string) => (await loadEnvironment(context, [file], { withProcess: false })).env
  const [a, b] = [await envOf(files[0]), await envOf(files[1])]
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
  const same = variables.length === 0
  const paint = await loadPaint(context.colour.stdout)
  const sign = {
    'only in the first': paint.red('−'),
    'only in the second': paint.green('+'),
    'different values': paint.yellow('~'),
  }
  const lines = [
    ...groups.map(({ name, first, second }) => `${paint.bold(name)}  ${first} → ${second}\n`),
    groups.length > 0 ? '\n' : '',
    ...variables.map(({ name, state, known }) => {
      const unknown = known ? '' : paint.dim(', not in the contract')
      return `${sign[state]} ${name.padEnd(40)}${state}${unknown}\n`
    }),
    same ? 'the same\n' : `\n${variables.length} of ${names.length} variables differ\n`,
  ].join('')
  return { json: { same, groups, variables }, text: lines, exit: same ? EXIT.passed : EXIT.failed }
}

/** A table of names against readers: the same letter is the same value, a dash is no value at all. */
export async function compareDialects(context: Context, file: string): Promise<Answer<'env dialects'>> {
  const text = await readTextFile(context, file)
  const read = DIALECTS.map((dialect) => ({ dialect, ...readAs(dialect, text) }))
  // Only names that our own reader finds or that we know: what other readers take for a name may be a line of a key.
  const { contract } = context.platform
  const found = parseEnvFile(contract, text, file).assignments.map(({ name }) => name)
  const known = read.flatMap(({ values }) => [...values.keys()].filter(contract.find))
  const names = [...new Set([...found, ...known])].sort()
  const rows = names.map((name) => ({
    name,
    readers: verdicts(read.map(({ values, rejected }) => (rejected ? null : values.get(name)))),
  }))
  // A reader that refuses the file is reported once, below. Repeated for each name, it would hide the real differences.
  const differing = rows.filter(({ readers }) => new Set(readers.filter((one) => one !== 'refused')).size > 1)
  const rejected = read.filter((one) => one.rejected)
  const paint = await loadPaint(context.colour.stdout)
  const width = differing.reduce((most, { name }) => Math.max(most, name.length), 4) + 2
  const cell = (verdict: string, index: number) => {
    const isLast = index === DIALECTS.length - 1
    const padded = verdict.padEnd(isLast ? 0 : (DIALECTS[index]?.length ?? 0) + 2)
    return verdict === 'A' ? padded : paint.yellow(padded)
  }
  const table = [
    `${paint.bold('name'.padEnd(width) + DIALECTS.join('  '))}\n`,
    ...differing.map(({ name, readers }) => `${name.padEnd(width)}${readers.map(cell).join('')}\n`),
    paint.dim(
      '\nThe same letter is the same value; – is none. $(…) is run by the real dotenv-expand, and never here.\n',
    ),
  ]
  const because = rejected.map(
    ({ dialect, rejectedLine = 1 }) => `${dialect} (because of line ${rejectedLine})`,
  )
  const lines = [
    ...(differing.length > 0 ? table : []),
    because.length > 0 ? `${paint.red('refused by')} ${because.join(', ')}\n` : '',
    `${names.length - differing.length} of ${names.length} names are read alike by all${rejected.length > 0 ? ' others' : ''}\n`,
  ]
  const byReader = rows.map(({ name, readers }) => ({
    name,
    readers: Object.fromEntries(DIALECTS.map((dialect, index) => [dialect, readers[index]])),
  }))
  return {
    json: { refusing: rejected.map(({ dialect }) => dialect), names: byReader },
    text: lines.join(''),
    exit: differing.length === 0 && rejected.length === 0 ? EXIT.passed : EXIT.failed,
  }
}

/** Values become letters in the order in which they first appear, so that none is shown. `null`: the file is refused. */
function verdicts(values: readonly (string | undefined | null)[]) {
  const seen = [...new Set(values.filter((value) => typeof value === 'string'))]
  return values.map((value) => {
    if (value === null) return 'refused'
    if (value === undefined) return '–'
    return (['A', 'B', 'C', 'D', 'E', 'F'] as const)[seen.indexOf(value)] ?? 'F'
  })
}
