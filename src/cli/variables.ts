import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Contract } from '../core/env/contract.ts'
import { evaluateGroups, rawValue } from '../core/env/environment.ts'
import { LIVE_FINDINGS, WARNINGS } from '../core/env/explanations.ts'
import { variablesOf } from '../core/env/rule.ts'
import { fileNameOf, secretBehind } from '../core/env/secret-files.ts'
import { LINT_RULES } from '../core/mail/lint/rules.ts'
import { environmentTypes, mailTypes } from '../platform/env-types.ts'
import type { Answer } from './command.ts'
import { type Context, listColumns } from './context.ts'
import { loadEnvironment } from './environment.ts'
import { CommandError, EXIT, type ExitCode, wrongUsage } from './exit.ts'
import { unknownName } from './inputs.ts'
import { beside, wrap } from './output/text.ts'
import { loadPaint } from './terminal.ts'

const NAME_WIDTH = 40
/** Width of the state before a name, with the space around it. */
const MARK_WIDTH = 15
/** Below this, names and readers do not fit in columns of one width. */
const WIDE = 72

/** Every group and variable with its state; never a value. A malformed one is set, and behaves as absent. */
export async function listVariables(
  context: Context,
  envFiles: readonly string[],
): Promise<Answer<'env list'>> {
  const { env } = await loadEnvironment(context, envFiles)
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
  return { json: { groups }, text: blocks.join('\n') }
}

interface Explanation {
  readonly title: string
  /** The kind of thing explained; absent if the title says it. */
  readonly kind?: string
  readonly sentences: readonly string[]
  readonly rows?: readonly (readonly [label: string, text: string])[]
}

/** Explains a variable, a group or the id of a finding; anything else is wrong usage that names the nearest. */
export async function explain(context: Context, name: string): Promise<string> {
  const { contract } = context.platform
  const found = ofVariable(contract, name) ?? ofGroup(contract, name) ?? ofFinding(contract, name)
  if (found === undefined)
    throw unknownName({
      kind: 'variable, group or finding',
      name,
      known: [...contract.variables.map((variable) => variable.name), ...idsOf(contract)],
      otherwise: 'Run platformctl env list to see the variables.',
    })
  const paint = await loadPaint(context.colour.stdout)
  // Off a terminal a sentence stays on one line, so that it can be searched.
  const columns = context.stdout.columns ?? Number.POSITIVE_INFINITY
  const lines = [
    `${paint.bold(found.title)}${found.kind === undefined ? '' : paint.dim(` (${found.kind})`)}`,
    ...found.sentences.flatMap((sentence) => wrap(sentence, columns)),
  ]
  if (found.rows && found.rows.length > 0) lines.push('')
  for (const [label, text] of found.rows ?? []) lines.push(beside(paint.dim(label.padEnd(10)), text, columns))
  return `${lines.join('\n')}\n`
}

/** The only errors that do not come from a rule of the contract. */
const ERRORS = new Set(['required-missing', 'secret-set-twice', 'unreadable-secret-file'])

const idsOf = (contract: Contract) => [
  ...contract.groups.map((group) => group.name),
  ...contract.rules.map(({ id }) => id),
  ...Object.keys(WARNINGS),
  ...Object.keys(LIVE_FINDINGS),
  ...Object.keys(LINT_RULES),
]

function ofVariable(contract: Contract, name: string): Explanation | undefined {
  const variable = contract.find(name) ?? secretBehind(contract, name)
  if (variable === undefined) return undefined
  const group = contract.group(variable.group)
  const rules = contract.rules.filter((rule) => variablesOf(rule).includes(variable.name))
  return {
    title: variable.name,
    sentences: variable.summary === '' ? [] : [variable.summary],
    rows: [
      ['group', `${variable.group}: unlocks ${group?.unlocks}; when absent, ${group?.absent}`],
      ['read by', variable.services.join(', ')],
      ...(variable.malformed === 'error' ? [['malformed', 'an error'] as const] : []),
      ['secret', variable.secret ? `yes; ${fileNameOf(variable.name)} may name a file that holds it` : 'no'],
      ...(variable.example === '' ? [] : [['example', variable.example] as const]),
      ...rules.map(({ id, cause }) => ['rule', `${id}: ${cause}`] as const),
    ],
  }
}

function ofGroup(contract: Contract, name: string): Explanation | undefined {
  const group = contract.group(name)
  if (group === undefined) return undefined
  const rules = contract.rules.filter((rule) => rule.group === name)
  const { unlocks, absent, always, variables } = group
  return {
    title: name,
    kind: 'a group of variables',
    sentences: [`Unlocks ${unlocks}.`, always ? 'Always on.' : `When absent: ${absent}.`],
    rows: [
      ['variables', variables.map((one) => one.name).join(', ')],
      ...rules.map(({ id, cause }) => ['rule', `${id}: ${cause}`] as const),
    ],
  }
}

function ofFinding(contract: Contract, id: string): Explanation | undefined {
  const rule = Object.hasOwn(WARNINGS, id) ? undefined : contract.rules.find((one) => one.id === id)
  if (rule)
    return {
      title: id,
      kind: 'error',
      sentences: [rule.cause, rule.fix],
      rows: [['variables', variablesOf(rule).join(', ')]],
    }
  const warning = WARNINGS[id]
  if (warning !== undefined)
    return {
      title: id,
      kind: id === 'group-absent' ? 'notice' : ERRORS.has(id) ? 'error' : 'warning',
      sentences: [warning],
    }
  const live = Object.entries(LIVE_FINDINGS).find(([one]) => one === id)?.[1]
  if (live)
    return { title: id, kind: 'a live check of preflight --deep', sentences: [live.meaning, live.fix] }
  const lint = Object.entries(LINT_RULES).find(([one]) => one === id)?.[1]
  return lint && { title: id, kind: `${lint.severity} of platformctl email lint`, sentences: [lint.meaning] }
}

/** Writes a declaration file of the variables or the mails; one that is not of the same command is never replaced. */
export async function writeTypes(
  context: Context,
  of: 'variables' | 'mails',
  out: string | undefined,
): Promise<string | ExitCode> {
  const { contract, mails } = context.platform
  const text =
    of === 'variables' ? environmentTypes(contract) : mailTypes(mails.definitions, await mails.compiled())
  if (out === undefined) return text
  const madeBy = text.slice(0, text.indexOf('.'))
  const file = path.resolve(context.cwd, out)
  const fail = (why: string, cause?: unknown) => wrongUsage(`cannot write ${out}: ${why}`, { cause })
  try {
    if (existsSync(file) && !readFileSync(file, 'utf8').startsWith(madeBy))
      throw fail('it holds something else; name another file.')
    writeFileSync(file, text)
  } catch (error) {
    throw error instanceof CommandError ? error : fail('check the path and who owns the folder.', error)
  }
  context.stderr.write(`Wrote ${out}.\n`)
  return EXIT.passed
}
