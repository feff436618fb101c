import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Contract } from '../core/env/contract.ts'
import { ERRORS, LIVE_FINDINGS, WARNINGS } from '../core/env/explanations.ts'
import { expectedOf } from '../core/env/kinds.ts'
import { variablesOf } from '../core/env/rule.ts'
import { fileNameOf, secretBehind } from '../core/env/secret-files.ts'
import { evaluateGroups, rawValue } from '../core/env/settings.ts'
import { LINT_RULES } from '../core/mail/lint/rules.ts'
import { environmentTypes, mailTypes } from '../platform/env-types.ts'
import { type Context, EXIT, listColumns, loadPaint, wrongUsage } from './context.ts'
import { loadEnvironment } from './environment.ts'
import { unknownName } from './inputs.ts'
import { beside, wrap } from './output/text.ts'

const NAME_WIDTH = 40
/** Width of the state before a name, with the space around it. */
const MARK_WIDTH = 15
/** Below this, names and readers do not fit in columns of one width. */
const WIDE = 72

/** Every group and variable with its state; never a value. A malformed one is set, and behaves as absent. */
export async function listVariables(context: Context, envFiles: readonly string[]) {
  const { env } = await loadEnvironment(context, envFiles)
  const { contract } = context.platform
  const { states, usable, broken } = evaluateGroups(contract, env)
  const required = broken.flatMap(({ rule, missing }) => (rule.kind === 'required' ? missing : []))
  const groups = contract.groups.map(({ name, variables }) => ({
    name,
    state: states.get(name) ?? 'absent',
    variables: variables.map(({ name, services, summary }) => {
      const set = rawValue(env, name) !== undefined
      const malformed = set && !usable.has(name)
      return { name, set, malformed, missing: !set && required.includes(name), services, summary }
    }),
  }))
  const paint = await loadPaint(context.colour.stdout)
  const colour = { configured: paint.green, 'half-configured': paint.red, absent: paint.dim }
  const columns = listColumns(context.stdout)
  const blocks = groups.map(({ name, state, variables }) => {
    // As wide as the terminal allows, so that the readers stay on the line.
    const longest = Math.max(...variables.map((variable) => variable.name.length))
    const width = columns < WIDE ? longest + 2 : NAME_WIDTH
    const rows = variables.map(({ name, set, malformed, missing, services }) => {
      const ofUnset = missing ? paint.red('✖ required ') : paint.dim('○ not set  ')
      const ofSet = malformed ? paint.yellow('▲ malformed') : paint.green('● set      ')
      const lead = `  ${set ? ofSet : ofUnset}  ${name.padEnd(width)}`
      const readers = services.join(', ')
      const fits = MARK_WIDTH + width + readers.length <= columns
      return `${fits ? lead + paint.dim(readers) : beside(lead, paint.dim(readers), columns)}\n`
    })
    return `${paint.bold(name)}  ${colour[state](state)}\n${rows.join('')}`
  })
  return { json: { groups }, text: blocks.join('\n') }
}

interface Explanation {
  /** Its own name, if another one was asked for. */
  readonly title?: string
  /** What is explained, unless its name says it. */
  readonly kind?: string
  readonly sentences: readonly string[]
  readonly rows?: readonly (readonly [label: string, text: string | false])[]
}

/** Explains a variable, a group or the id of a finding; anything else is wrong usage that names the nearest. */
export async function explain(context: Context, name: string): Promise<string> {
  const { contract } = context.platform
  const found = ofVariable(contract, name) ?? ofGroup(contract, name) ?? ofFinding(contract, name)
  if (found === undefined)
    throw unknownName({
      kind: 'variable, group or finding',
      name,
      known: [
        ...[...contract.variables, ...contract.groups].map((one) => one.name),
        ...contract.rules.map(({ id }) => id),
        ...[WARNINGS, LIVE_FINDINGS, LINT_RULES].flatMap(Object.keys),
      ],
      otherwise: 'Run platformctl env list to see the variables.',
    })
  const paint = await loadPaint(context.colour.stdout)
  // Off a terminal a sentence stays on one line, so that it can be searched.
  const columns = listColumns(context.stdout)
  const { title = name, kind, sentences, rows = [] } = found
  const lines = [
    `${paint.bold(title)}${kind === undefined ? '' : paint.dim(` (${kind})`)}`,
    ...sentences.flatMap((sentence) => wrap(sentence, columns)),
    ...(rows.length > 0 ? [''] : []),
    ...rows.flatMap(([label, text]) =>
      text === false ? [] : beside(paint.dim(label.padEnd(10)), text, columns),
    ),
  ]
  return `${lines.join('\n')}\n`
}

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
      ['takes', expectedOf(variable)],
      ['read by', variable.services.join(', ')],
      ['malformed', variable.malformed === 'error' && 'an error'],
      ['secret', variable.secret ? `yes; ${fileNameOf(variable.name)} may name a file that holds it` : 'no'],
      ['default', variable.default ?? false],
      ['example', variable.example !== '' && variable.example],
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
    kind: 'a group of variables',
    sentences: [`Unlocks ${unlocks}.`, always ? 'Always on.' : `When absent: ${absent}.`],
    rows: [
      ['variables', variables.map((one) => one.name).join(', ')],
      ...rules.map(({ id, cause }) => ['rule', `${id}: ${cause}`] as const),
    ],
  }
}

function ofFinding(contract: Contract, id: string): Explanation | undefined {
  const warning = Object.hasOwn(WARNINGS, id) ? WARNINGS[id] : undefined
  const rule = warning === undefined ? contract.rules.find((one) => one.id === id) : undefined
  if (rule) {
    const rows = [['variables', variablesOf(rule).join(', ')]] as const
    return { kind: 'error', sentences: [rule.cause, rule.fix], rows }
  }
  const severity = id === 'group-absent' ? 'notice' : ERRORS.has(id) ? 'error' : 'warning'
  if (warning !== undefined) return { kind: severity, sentences: [warning] }
  const live = Object.entries(LIVE_FINDINGS).find(([one]) => one === id)?.[1]
  if (live) return { kind: 'a live check of preflight --deep', sentences: [live.meaning, live.fix] }
  const lint = Object.entries(LINT_RULES).find(([one]) => one === id)?.[1]
  return lint && { kind: `${lint.severity} of platformctl email lint`, sentences: [lint.meaning] }
}

/** Writes a declaration file of the variables or the mails; only an empty one and one of the same command are replaced. */
export async function writeTypes(context: Context, of: 'variables' | 'mails', out: string | undefined) {
  const { contract, mails } = context.platform
  const text =
    of === 'variables' ? environmentTypes(contract) : mailTypes(mails.definitions, await mails.compiled())
  if (out === undefined) return text
  const madeBy = text.slice(0, text.indexOf('.'))
  const file = path.resolve(context.cwd, out)
  const fail = (why: string) => wrongUsage(`cannot write ${out}: ${why}`)
  let isOurs = false
  try {
    const found = statSync(file, { throwIfNoEntry: false })
    isOurs = !found || (found.isFile() && (!found.size || readFileSync(file, 'utf8').startsWith(madeBy)))
    if (isOurs) writeFileSync(file, text)
  } catch {
    throw fail('check the path, the space on the disk and who owns the folder.')
  }
  if (!isOurs) throw fail('it holds something else; name another file.')
  context.stderr.write(`Wrote ${out}.\n`)
  return EXIT.passed
}
