import { type Contract, type Group, switchesOf, type Variable } from '../core/env/contract.ts'
import { KINDS, type KindOfValue } from '../core/env/kinds.ts'
import type { Rule } from '../core/env/rule.ts'
import type { MailDefinition } from '../core/mail/definition.ts'
import type { CompiledMails } from '../core/mail/template.ts'

/** Variables that are present whenever the group is configured, as the types of `PlatformEnvironment` compute them. */
export function guaranteed(group: Group): ReadonlySet<string> {
  const names = group.variables.map(({ name }) => name)
  const required = group.variables.flatMap((one) => (one.required === true ? [one.name] : []))
  const ways = group.always ? [[]] : switchesOf(group).map((name) => [name])
  const sure = ways.map((way) => closure([...way, ...required], group.rules))
  return new Set(names.filter((name) => sure.length > 0 && sure.every((one) => one.has(name))))
}

/** All variables that the rules require, directly or indirectly, once these are present. */
function closure(present: readonly string[], rules: readonly Rule[]): ReadonlySet<string> {
  const known = new Set(present)
  for (let size = 0; size < known.size; ) {
    size = known.size
    for (const rule of rules) for (const implied of impliedBy(rule, known)) known.add(implied)
  }
  return known
}

function impliedBy(rule: Rule, known: ReadonlySet<string>): readonly string[] {
  const has = (name: string) => known.has(name)
  if (!('needs' in rule) || rule.enough === 'any' || rule.where) return []
  const { when = [], match, needs } = rule
  return (match === 'any' ? when.some(has) : when.every(has)) ? needs : []
}

/** A declaration file of what `readPlatformEnv` gives, for programs that do not import the definition. */
export function environmentTypes(contract: Contract): string {
  const groups = contract.groups.map((group) => {
    const { name, unlocks, absent, always } = group
    return `  ${comment(`Unlocks ${unlocks}. ${always ? 'Always on' : `Undefined unless configured: ${absent}`}.`)}
  readonly ${key(name)}:
    | {
${variablesOf(group)}
      }${always ? '' : '\n    | undefined'}`
  })
  const names = contract.variables.map(
    ({ name, summary }) =>
      `      ${summary === '' ? '' : `${comment(summary)}\n      `}${key(name)}?: string`,
  )
  return `// Made by "platformctl env types". Run it again after a change of the definition.

/** A value that prints as [secret]; \`reveal()\` gives it. */
export interface Secret {
  reveal(): string
}

/** The result of readPlatformEnv. */
export interface PlatformEnv {
${groups.join('\n')}
}

declare global {
  namespace NodeJS {
    interface ProcessEnv {
${names.join('\n')}
    }
  }
}
`
}

/** A declaration file of the mails that code sends, and their slots. Lessons are left to the dispatcher. */
export function mailTypes(definitions: readonly MailDefinition[], compiled: CompiledMails): string {
  const mails = definitions
    .filter(
      ({ name, lesson, translates }) => !lesson && translates === undefined && Object.hasOwn(compiled, name),
    )
    .map(({ name }) => {
      const slots = Object.keys(compiled[name]?.slots ?? {}).map((slot) => `readonly ${key(slot)}: string`)
      return `    readonly ${key(name)}: { ${slots.join('; ')} }`
    })
  return `// Made by "platformctl email types". Run it again after a change of the mails.

export {}

declare global {
  /** The slots of each mail, for platform.mail.send. */
  interface PlatformMails {
${mails.join('\n')}
  }
}
`
}

function variablesOf(group: Group): string {
  const sure = guaranteed(group)
  return group.variables
    .map((variable) => {
      const optional = !sure.has(variable.name) && variable.default === undefined
      return `        readonly ${key(variable.name)}: ${typeOf(variable)}${optional ? ' | undefined' : ''}`
    })
    .join('\n')
}

function typeOf({ kind, secret, schema, of }: Variable): string {
  if (secret) return 'Secret'
  if (schema !== undefined) return 'unknown'
  const { type = 'string' }: KindOfValue = KINDS[kind]
  return of === undefined ? type : of.map((value) => JSON.stringify(value)).join(' | ')
}

const key = (name: string) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name))

/** Escapes a text of the definition, so that it cannot end the comment around it. */
const comment = (text: string) => `/** ${text.replaceAll('*/', '*\\/').replaceAll(/\s+/g, ' ')} */`
