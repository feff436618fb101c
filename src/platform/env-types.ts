import type { Contract, Group, Variable } from '../core/env/contract.ts'
import type { Kind } from '../core/env/definition.ts'
import { guaranteed } from './guaranteed.ts'

const TYPES: Readonly<Record<Kind, string>> = {
  text: 'string',
  secret: 'Secret',
  url: 'string',
  dsn: 'string',
  'store-url': 'Secret',
  'smtp-url': 'Secret',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  enum: 'string',
  duration: 'number',
  bytes: 'number',
  email: 'string',
  mailbox: '{ readonly name: string | undefined; readonly address: string }',
  host: 'string',
  port: 'number',
  path: 'string',
  list: 'readonly string[]',
  json: 'unknown',
  origins: 'readonly string[]',
  proxies: 'readonly string[]',
  'log-level': "'debug' | 'info' | 'warn' | 'error'",
  table: 'string',
  price: 'string',
}

/** How every generated file begins. */
export const MADE_BY = '// Made by "platformctl env types".'

/** A declaration file of what `readPlatformEnv` gives, for programs that do not import the definition. */
export function environmentTypes(contract: Contract): string {
  const groups = contract.groups.map(
    (group) => `  ${comment(`Unlocks ${group.unlocks}. Undefined unless configured: ${group.absent}.`)}
  readonly ${key(group.name)}:
    | {
${variablesOf(group)}
      }
    | undefined`,
  )
  const names = contract.variables.map(
    ({ name, summary }) =>
      `      ${summary === '' ? '' : `${comment(summary)}\n      `}${key(name)}?: string`,
  )
  return `${MADE_BY} Run it again after a change of the definition.

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
  return of === undefined ? TYPES[kind] : of.map((value) => JSON.stringify(value)).join(' | ')
}

function key(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)
}

/** Escapes a text of the definition, so that it cannot end the comment around it. */
function comment(text: string): string {
  return `/** ${text.replaceAll('*/', '*\\/').replaceAll(/\s+/g, ' ')} */`
}
