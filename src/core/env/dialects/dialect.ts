export const DIALECTS = ['node', 'dotenv', 'dotenv-expand', 'compose', 'docker', 'systemd'] as const
export type Dialect = (typeof DIALECTS)[number]

export interface DialectResult {
  readonly values: ReadonlyMap<string, string>
  /** This reader refuses the whole file. */
  readonly rejected: boolean
  /** The line, from 1, that it refuses the file for. */
  readonly rejectedLine?: number
}
