import { evaluateGroups, rawValue } from '../core/env/read-settings.ts'
import { type Context, listColumns } from './context.ts'
import { loadEnvironment } from './environment.ts'
import type { ExitCode } from './exit.ts'
import { beside } from './output/wrap.ts'
import { loadPaint } from './paint.ts'
import { printJson, printText } from './print.ts'

const NAME_WIDTH = 40
/** Width of the state before a name, with the space around it. */
const MARK_WIDTH = 15
/** Below this, names and readers do not fit in columns of one width. */
const WIDE = 72

/** Every group and variable with its state; never a value. A malformed one is set, and behaves as absent. */
export async function listVariables(
  context: Context,
  options: { readonly envFile: readonly string[]; readonly format: 'text' | 'json' },
): Promise<ExitCode> {
  const { env } = await loadEnvironment(context, options.envFile)
  const { contract } = context.platform
  const { states, usable, broken } = evaluateGroups(contract, env)
  const required = broken.flatMap(({ rule, missing }) => (rule.kind === 'required' ? missing : []))
  const groups = contract.groups.map(({ name, variables }) => ({
    name,
    state: states.get(name) ?? 'absent',
    variables: variables.map((variable) => ({
      name: variable.name,
      set: rawValue(env, variable.name) !== undefined,
      malformed: rawValue(env, variable.name) !== undefined && !usable.has(variable.name),
      missing: required.includes(variable.name),
      services: variable.services,
      summary: variable.summary,
    })),
  }))
  if (options.format === 'json') return printJson(context, 'env list', { groups })
  const paint = await loadPaint(context.colour.stdout)
  const colour = { configured: paint.green, 'half-configured': paint.red, absent: paint.dim }
  const columns = listColumns(context.stdout)
  const blocks = groups.map(({ name, state, variables }) => {
    // As wide as the terminal allows, so that the readers stay on the line.
    const longest = Math.max(...variables.map((variable) => variable.name.length))
    const width = columns < WIDE ? longest + 2 : NAME_WIDTH
    const rows = variables.map((variable) => {
      const mark = variable.malformed
        ? paint.yellow('▲ malformed')
        : variable.set
          ? paint.green('● set      ')
          : variable.missing
            ? paint.red('✖ required ')
            : paint.dim('○ not set  ')
      const [lead, readers] = [`  ${mark}  ${variable.name.padEnd(width)}`, variable.services.join(', ')]
      const fits = MARK_WIDTH + width + readers.length <= columns
      return `${fits ? lead + paint.dim(readers) : beside(lead, paint.dim(readers), columns)}\n`
    })
    return `${paint.bold(name)}  ${colour[state](state)}\n${rows.join('')}`
  })
  return printText(context, blocks.join('\n'))
}
