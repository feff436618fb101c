/** The result of one env-file reader for a text. */
export interface DialectResult {
  readonly values: ReadonlyMap<string, string>
  /** This reader refuses the whole file. */
  readonly rejected: boolean
  /** The line, from 1, that it refuses the file for. */
  readonly rejectedLine?: number
}
