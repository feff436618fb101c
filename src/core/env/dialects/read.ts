import { parseEnv } from 'node:util'
import { readCompose } from './compose.ts'
import { readDotenv, readDotenvExpand } from './dotenv.ts'
import type { DialectResult, Look } from './template.ts'

type State =
  | 'before-name'
  | 'name'
  | 'before-value'
  | 'value'
  | 'escape'
  | 'single'
  | 'double'
  | 'double-escape'
  | 'comment'
  | 'comment-escape'

const NEWLINE = /[\n\r]/
const SPACE = /[ \t\n\r]/
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** `EnvironmentFile=` of systemd 252: its state machine. A name it does not accept is skipped with a warning in its log. */
function readSystemd(text: string): DialectResult {
  const values = new Map<string, string>()
  // Read as text that a NUL ends, so that it refuses a file with one inside.
  const nul = text.indexOf('\0')
  if (nul !== -1) return { values, rejected: true, rejectedLine: text.slice(0, nul).split('\n').length }
  let [state, name, value, quoted, trailing]: [State, string, string, boolean, number] = [
    'before-name',
    '',
    '',
    false,
    0,
  ]
  const push = () => {
    const key = name.trimEnd()
    // An empty value is dropped; __proto__ is in the measurements as lost.
    if (NAME.test(key) && key !== '__proto__' && (value !== '' || quoted))
      values.set(key, value.slice(0, value.length - trailing))
    ;[state, name, value, quoted, trailing] = ['before-name', '', '', false, 0]
  }
  const add = (char: string) => {
    value += char
    trailing = 0
  }
  for (const char of text) {
    const newline = NEWLINE.test(char)
    switch (state) {
      case 'before-name':
        if (char === '#' || char === ';') state = 'comment'
        else if (!SPACE.test(char)) [state, name] = ['name', char]
        break
      case 'name':
        if (newline) [state, name] = ['before-name', '']
        else if (char === '=') state = 'before-value'
        else name += char
        break
      case 'before-value':
        if (newline) push()
        else if (char === "'") [state, quoted] = ['single', true]
        else if (char === '"') [state, quoted] = ['double', true]
        else if (char === '\\') state = 'escape'
        else if (!SPACE.test(char)) {
          state = 'value'
          add(char)
        }
        break
      case 'value':
        if (newline) push()
        else if (char === '\\') state = 'escape'
        else {
          value += char
          trailing = SPACE.test(char) ? trailing + 1 : 0
        }
        break
      case 'escape':
        state = 'value'
        if (!newline) add(char)
        break
      case 'single':
        if (char === "'") state = 'before-value'
        else add(char)
        break
      case 'double':
        if (char === '"') state = 'before-value'
        else if (char === '\\') state = 'double-escape'
        else add(char)
        break
      case 'double-escape':
        state = 'double'
        if (/["\\`$]/.test(char)) add(char)
        else if (char !== '\n') add(`\\${char}`)
        break
      case 'comment':
        if (char === '\\') state = 'comment-escape'
        else if (newline) state = 'before-name'
        break
      case 'comment-escape':
        state = 'comment'
    }
  }
  // The end of the file ends whatever is open, also a quote.
  if (state !== 'before-name' && state !== 'name' && !state.startsWith('comment')) push()
  return { values, rejected: false }
}

/** `docker run --env-file` (docker/cli): lines are split at the first `=` and taken raw; white space in a name refuses the file. */
function readDocker(text: string, ofMachine: Look): DialectResult {
  const values = new Map<string, string>()
  for (const [index, whole] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    const line = whole.replace(/\r$/, '').replace(/^[ \t]+/, '')
    if (line === '' || line.startsWith('#')) continue
    const equals = line.indexOf('=')
    const name = equals === -1 ? line : line.slice(0, equals)
    if (name === '' || /[ \t]/.test(name))
      return { values: new Map(), rejected: true, rejectedLine: index + 1 }
    // A name alone passes the machine's value on, when there is one.
    const value = equals === -1 ? ofMachine(name) : line.slice(equals + 1)
    if (value !== undefined) values.set(name, value)
  }
  return { values, rejected: false }
}

export const DIALECTS = ['node', 'dotenv', 'dotenv-expand', 'compose', 'docker', 'systemd'] as const
export type Dialect = (typeof DIALECTS)[number]

/**
 * Reads a text as the named reader would, as measured against the real ones. Nothing is executed. `machine` is what
 * references may see of the environment around the file.
 */
export function readAs(
  dialect: Dialect,
  text: string,
  machine: Readonly<Record<string, string>> = {},
): DialectResult {
  const ofMachine: Look = (name) => (Object.hasOwn(machine, name) ? machine[name] : undefined)
  switch (dialect) {
    case 'node':
      // Node's own parser: the one that --env-file of this very Node uses.
      return { values: new Map(Object.entries(parseEnv(text) as Record<string, string>)), rejected: false }
    case 'dotenv':
      return readDotenv(text)
    case 'dotenv-expand':
      return readDotenvExpand(text, ofMachine)
    case 'compose':
      return readCompose(text, ofMachine)
    case 'docker':
      return readDocker(text, ofMachine)
    case 'systemd':
      return readSystemd(text)
  }
}
