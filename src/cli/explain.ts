import { variablesOf } from '../core/env/breach.ts'
import type { Contract } from '../core/env/contract.ts'
import { LIVE_FINDINGS, WARNINGS } from '../core/env/explanations.ts'
import { fileNameOf, secretBehind } from '../core/env/secret-files.ts'
import { LINT_RULES } from '../core/mail/lint/rules.ts'
import type { Context } from './context.ts'
import type { ExitCode } from './exit.ts'
import { beside, wrap } from './output/wrap.ts'
import { loadPaint } from './paint.ts'
import { printText } from './print.ts'
import { unknownName } from './suggest.ts'

interface Explanation {
  readonly title: string
  /** The kind of thing explained; absent if the title says it. */
  readonly kind?: string
  readonly sentences: readonly string[]
  readonly rows?: readonly (readonly [label: string, text: string])[]
}

/** Explains a variable, a group or the id of a finding; anything else is wrong usage that names the nearest. */
export async function explain(context: Context, name: string): Promise<ExitCode> {
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
  return printText(context, `${lines.join('\n')}\n`)
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
