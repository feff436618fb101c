import { parseEnv } from 'node:util'
import { readCompose } from './compose.ts'
import { readDocker } from './docker.ts'
import { readDotenv } from './dotenv.ts'
import { readDotenvExpand } from './dotenv-expand.ts'
import type { DialectResult } from './result.ts'
import { readSystemd } from './systemd.ts'

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
