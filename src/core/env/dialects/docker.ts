import type { DialectResult } from './result.ts'

/** `docker run --env-file` (docker/cli): lines are split at the first `=` and taken raw; white space in a name refuses the file. */
export function readDocker(text: string, machine: Readonly<Record<string, string>>): DialectResult {
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
