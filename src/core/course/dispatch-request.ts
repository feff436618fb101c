/**
 * What a dispatch call may be asked for. Each field is a parameter of the endpoint, a member of its body, an option of
 * the command (its key in camel case), and a parameter of the statements that look for lessons: what narrows them is a
 * condition of `ASKED_FOR` (`store/counts.ts`).
 */
export interface DispatchRequest {
  /** How many lessons at most. */
  readonly limit?: number | undefined
}

type Field = Readonly<Record<'option' | 'help' | 'meaning', string>> & {
  readonly example: string | number
  /** Of a whole number from 1 on. Without it, an option that takes a value is a text, and any other `true`. */
  readonly most?: number
}
/** The option with its help, and what the reference of the endpoint says. */
export const FIELDS: Readonly<Record<keyof DispatchRequest, Field>> = {
  limit: {
    option: '--limit <n>',
    help: 'how many lessons one call sends at most (1 to 10000)',
    meaning: 'How many lessons at most.',
    example: 100,
    most: 10_000,
  },
}

/** The request among the options of a command. */
export const requestIn = (options: DispatchRequest): DispatchRequest =>
  Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(FIELDS, name)))
