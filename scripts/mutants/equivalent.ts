/** Mutants that change nothing which anybody could notice, each with the reason; found by the text of their lines. */
export const EQUIVALENT: readonly {
  readonly file: string
  readonly before: string
  readonly after: string
  readonly reason: string
}[] = []
