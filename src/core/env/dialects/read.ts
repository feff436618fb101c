import { parseEnv } from 'node:util'
import { readCompose } from './compose.ts'
import { readDotenv } from './dotenv.ts'
import { readDotenvExpand } from './dotenv-expand.ts'
import type { DialectResult } from './result.ts'
import { readSystemd } from './systemd.ts'

/** `docker run --env-file` (docker/cli): lines are split at the first `=` and taken raw; white space in a name refuses the file. */
function readDocker(text: string, machine: Readonly<Record<string, string>>): DialectResult {
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
    if (equals !== -1) values.set(name, line.slice(equals + 1))
    // A name alone passes the machine's value on, when there is one.
    else if (Object.hasOwn(machine, name)) values.set(name, machine[name] ?? '')
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
  switch (dialect) {
    case 'node':
      // Node's own parser: the one that --env-file of this very Node uses.
      return { values: new Map(Object.entries(parseEnv(text) as Record<string, string>)), rejected: false }
    case 'dotenv':
      return readDotenv(text)
    case 'dotenv-expand':
      return readDotenvExpand(text, machine)
    case 'compose':
      return readCompose(text, machine)
    case 'docker':
      return readDocker(text, machine)
    case 'systemd':
      return readSystemd(text)
  }
}
