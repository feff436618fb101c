import * as z from 'zod'
import type * as store from './store.ts'

const UP_TO_10_000 = 'a whole number from 1 to 10,000'

/**
 * `DispatchRequest`, checked. Each field is a parameter of the endpoint, a member of its body, an option of
 * the command, and where the store asks for lessons (`store/dispatch.ts`, `store/counts.ts`).
 */
export const DispatchRequest = z.strictObject({
  limit: z.int(UP_TO_10_000).min(1, UP_TO_10_000).max(10_000, UP_TO_10_000).optional(),
})

type Words = Readonly<Record<'option' | 'help' | 'meaning', string> & { example: string | number }>
/** The option with its help, and what the reference of the endpoint says. */
const WORDS: Readonly<Record<keyof store.DispatchRequest, Words>> = {
  limit: {
    option: '--limit <n>',
    help: 'how many lessons one call sends at most (1 to 10000)',
    meaning: 'How many lessons at most.',
    example: 100,
  },
}

export const FIELDS = DispatchRequest.keyof().options.map((name) => ({
  name,
  form: DispatchRequest.shape[name].unwrap() as z.ZodType,
  ...WORDS[name],
}))

/** The request among the options of a command. */
export const requestIn = (options: object): store.DispatchRequest => DispatchRequest.strip().parse(options)
