import { evaluateGroups, rawValue } from '../core/env/read-settings.ts'
import type { Context } from './context.ts'
import { loadEnvironment } from './environment.ts'
import { EXIT, type ExitCode } from './exit.ts'
import { loadPaint } from './paint.ts'
import { printJson } from './print.ts'

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
