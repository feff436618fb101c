/** What one reader of env files makes of a text. */
export interface DialectResult {
  readonly values: ReadonlyMap<string, string>
  /** This reader refuses the whole file. */
  readonly rejected: boolean
  /** The line, from 1, that it refuses the file for. */
  readonly rejectedLine?: number
}
