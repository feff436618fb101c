import { parseEnv } from 'node:util'
import { readCompose } from './compose.ts'
import type { Dialect, DialectResult } from './dialect.ts'
import { readDotenv, readDotenvExpand } from './dotenv.ts'
import type { Look } from './template.ts'

/** A comment, or a name with what is quoted in its value and what follows. A line goes on behind a backslash. */
const STATEMENT =
  /[#;](?:\\[\s\S]|[^\\\n\r])*|([^ \t\n\r#;][^=\n\r]*)(?:=((?:[ \t]*(?:'[^']*'?|"(?:\\[\s\S]|[^"\\])*\\?"?))*)[ \t]*((?:\\[\s\S]?|[^\\\n\r])*))?/g
const QUOTED = /'([^']*)'?|"((?:\\[\s\S]|[^"\\])*)\\?"?/g
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** `EnvironmentFile=` of systemd 252. A name it does not accept is skipped with a warning in its log. */
function readSystemd(text: string): DialectResult {
  const values = new Map<string, string>()
  // Read as text that a NUL ends, so that it refuses a file with one inside.
  const nul = text.indexOf('\0')
  if (nul !== -1) return { values, rejected: true, rejectedLine: text.slice(0, nul).split('\n').length }
  for (const [, name = '', quoted, rest = ''] of text.matchAll(STATEMENT)) {
    let value = [...(quoted ?? '').matchAll(QUOTED)]
      .map(([, single, double = '']) => single ?? unescaped(double))
      .join('')
    let end = value.length
    for (const [piece] of rest.matchAll(/\\[\s\S]?|[ \t]+|[^\\ \t]+/g)) {
      const added = piece.startsWith('\\') ? piece.slice(1).replace(/[\n\r]/, '') : piece
      value += added
      // White space at the end is dropped, unless a backslash is before it.
      if (added !== '' && !/^[ \t]/.test(piece)) end = value.length
    }
    const key = name.trimEnd()
    // An empty value is dropped; __proto__ is in the measurements as lost.
    if (NAME.test(key) && key !== '__proto__' && (value !== '' || quoted))
      values.set(key, value.slice(0, end))
  }
  return { values, rejected: false }
}

/** In double quotes, a backslash before another character stays. */
function unescaped(text: string): string {
  return text.replace(/\\([\s\S])/g, (whole, char: string) =>
    /["\\`$]/.test(char) ? char : char === '\n' ? '' : whole,
  )
}

/** `docker run --env-file` (docker/cli): lines are split at the first `=` and taken raw; white space in a name refuses the file. */
function readDocker(text: string, ofMachine: Look): DialectResult {
  const values = new Map<string, string>()
  const lines = text.replace(/^\uFEFF/, '').split('\n')
  for (const [index, whole] of lines.entries()) {
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

/** Reads a text as the named reader would. Nothing is executed. `machine` is what references may see. */
export function readAs(
  dialect: Dialect,
  text: string,
  machine: Readonly<Record<string, string | undefined>> = {},
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
