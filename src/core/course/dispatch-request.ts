/** The option with its help, and what the reference of the endpoint says. */
type Field = Readonly<Record<'option' | 'help' | 'meaning', string>> & {
  readonly example: string | number
  /** Of a whole number from 1 on. Without it, an option that takes a value is a text, and any other `true`. */
  readonly most?: number
}

/**
 * What a dispatch call may be asked for, of lessons. Each is a parameter of the endpoint, a member of its body, an
 * option of the command (its key in camel case), and a parameter of the statements that look for lessons: what narrows
 * them is a condition of `ASKED_FOR` (`store/counts.ts`), and `nextStep` of the command repeats it. The command has to
 * refuse names that do not exist, by `unknownName` over `context.platform`; the endpoint finds nothing for them. The rest
 * comes from here, but what bounds a run: that is `createDispatcher`’s.
 */
const FIELDS = {
  limit: {
    option: '--limit <n>',
    help: 'how many lessons one call sends at most (1 to 10000)',
    meaning: 'How many lessons at most.',
    example: 100,
    most: 10_000,
  },
} as const satisfies Readonly<Record<string, Field>>

type Fields = typeof FIELDS
type ValueOf<Of extends Field> = Of extends { readonly most: number }
  ? number
  : Of extends { readonly option: `${string}<${string}` }
    ? string
    : true

export type DispatchRequest = { readonly [Name in keyof Fields]?: ValueOf<Fields[Name]> | undefined }

export const FIELD_LIST = Object.entries<Field>(FIELDS).map(([name, field]) => ({ name, ...field }))

/** The request among the options of a command. */
export const requestIn = (options: DispatchRequest): DispatchRequest =>
  Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(FIELDS, name)))
