import { isRecord } from '../core/is-record.ts'
import type { MailAsk, MailDefinition, MailResolution } from '../core/mail/definition.ts'
import type { Resolve, TemplateInput } from './definition.ts'

/** A mail of a definition as the engine sends it. */
export function ownMail(name: string, { slots, by, inputs = [], resolve }: TemplateInput): MailDefinition {
  // The context that the engine gives has everything that a definition's resolve may use.
  const ask = by && resolve && ({ by, inputs, resolve: checked(resolve) } as MailAsk)
  return { name, ...(slots && { slots }), ...(ask && { ask }) }
}

const WRONG: MailResolution = {
  answer: { kind: 'not_sent', reason: 'resolve of this template did not give { to, slots, about }' },
}

/** Validates the result of a definition's own function. */
function checked(resolve: Resolve<Readonly<Record<string, string>>>) {
  return async (...asked: Parameters<typeof resolve>): Promise<MailResolution> => {
    const found: unknown = await resolve(...asked)
    if (found === undefined || found === null) return undefined
    if (!isRecord(found) || !isRecord(found.slots)) return WRONG
    const { to, about, slots } = found
    if (typeof to !== 'string' || typeof about !== 'string') return WRONG
    if (!Object.values(slots).every((value) => typeof value === 'string')) return WRONG
    // Each value was seen to be text.
    return { to, about, slots: slots as Record<string, string> }
  }
}
