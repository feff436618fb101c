import * as z from 'zod'
import { PlatformError } from '../../core/errors.ts'
import type { MailDefinition } from '../../core/mail/definition.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { defineRoute, json, jsonBody, requireIdentity } from '../http/route.ts'

const RecordId = z.string().regex(/^[A-Za-z0-9_.:-]{1,128}$/, 'an id of 1 to 128 letters, digits and _ . : -')

interface EmailRequest {
  readonly template: string
  readonly inputs?: Readonly<Record<string, string>> | undefined
}

/** Only the ids of records: recipient and links are the server's to look up (CONTRACT §4). */
function requestOf(definitions: readonly MailDefinition[]): z.ZodType<EmailRequest> {
  const forms = definitions.flatMap(({ name, ask }) => {
    if (!ask) return []
    const inputs = z.strictObject(Object.fromEntries(ask.inputs.map((input) => [input, RecordId])))
    const template = z.literal(name)
    return z.strictObject({ template, inputs: ask.inputs.length === 0 ? inputs.optional() : inputs })
  })
  const [first, ...others] = forms
  // The platform has no mail that may be requested.
  if (first === undefined)
    return z.strictObject({ template: z.never(), inputs: z.strictObject({}).optional() })
  const names = definitions.flatMap(({ name, ask }) => (ask ? [name] : []))
  return z.discriminatedUnion('template', [first, ...others], {
    error: ({ code }) => (code === 'invalid_union' ? `one of ${names.join(', ')}` : undefined),
  })
}

/** `magicLink` for magic-link, with `invite_1` for its inviteId. */
function examplesOf(definitions: readonly MailDefinition[]) {
  const examples = definitions.flatMap(({ name, ask }) => {
    const inputs = ask?.inputs.map((input) => [input, `${input.replace(/Id$/, '')}_1`])
    const camelCase = name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
    return inputs ? [[camelCase, { template: name, inputs: Object.fromEntries(inputs) }]] : []
  })
  return Object.fromEntries(examples)
}

const EmailAnswer = z.union([
  z.strictObject({
    sent: z.literal(true),
    id: z.string(),
    queued: z
      .literal(true)
      .optional()
      .describe('It is stored, and will be sent whatever becomes of this process.'),
  }),
  z.strictObject({ sent: z.literal(false), reason: z.string() }),
])

export const route = ({ mails: { definitions } }: ResolvedPlatform) =>
  defineRoute({
    tag: 'Mail',
    summary: 'Sends a transactional mail about a record',
    description:
      'The mail decides whose token it needs: a person’s or the service role’s. Recipient and links come from the server’s record, never from the request. A record that is not the caller’s answers 404, exactly as one that does not exist. A mail that was sent for a record is not sent again: the answer then has the provider’s id. With a persistent store the mail is stored and the answer does not wait for the provider.',
    security: 'identity',
    body: jsonBody(8 * 1024, 'EmailRequest', requestOf(definitions), examplesOf(definitions)),
    answers: [
      json('Sent, or why not.', 'EmailAnswer', EmailAnswer, {
        queued: { sent: true, queued: true, id: 'q8Zr0c3vXk1m@example.com' },
        sent: { sent: true, id: '49a3999c-0ce1-4ea6-ab68-afcd6dc2e794' },
        notSent: { sent: false, reason: 'mail is not configured' },
      }),
    ],
    errors: ['locked', 'not_found', 'conflict', 'unavailable', 'store_unavailable'],
    handle: (site) => async (c) => {
      const asker = await requireIdentity(site, c)
      const { template, inputs = {} } = await c.json()
      const mail = await site.transactionalMail()
      const answer = await site.underway.during(mail.ask(asker, { template, inputs }))
      if (answer.kind === 'sent')
        return { sent: true as const, id: answer.id, ...(answer.queued && { queued: true as const }) }
      if (answer.kind === 'not_sent') return { sent: false as const, reason: answer.reason }
      if (answer.kind === 'conflict')
        throw new PlatformError(
          'conflict',
          'A mail about this record was sent with another content; one about a changed record needs a record of its own.',
        )
      if (answer.kind === 'not_found')
        throw new PlatformError('not_found', 'There is no such record for this caller.')
      throw new PlatformError('locked', answer.message)
    },
  })
