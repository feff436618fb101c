export type Severity = 'error' | 'warning' | 'notice'

/** Where a finding points: 1-based line and column of a file, as compilers print it. */
export interface Location {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** One error or warning (CONTRACT §2); `platformctl env explain ID` explains it. It never holds a value, or part of one. */
export interface Finding {
  readonly id: string
  readonly severity: Severity
  readonly services: readonly string[]
  /** The group of variables concerned (`mail`), or the part of platformctl that reports it (`template`). */
  readonly group: string
  readonly present: readonly string[]
  readonly missing: readonly string[]
  /** One sentence: what is wrong. */
  readonly cause: string
  /** One sentence: what to do about it. */
  readonly fix: string
  readonly location?: Location
  /** The line at `location` with every value masked. */
  readonly excerpt?: string
}

/** For sorting: errors first, then warnings, then notices. */
export const SEVERITY_RANK = { error: 0, warning: 1, notice: 2 } as const

/** Cause, fix, and which of the variables that an error is about are missing, in one line. */
export function sentencesOf({ severity, cause, fix, present, missing }: Finding): string {
  // Where none is set, the cause names them.
  const which = severity === 'error' && present.length > 0 && missing.length > 0
  return `${cause} ${fix}${which ? ` Missing: ${missing.join(', ')}.` : ''}`
}
