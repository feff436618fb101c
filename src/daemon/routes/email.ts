import * as z from 'zod'
import type { Identify } from '../../core/access/identity.ts'
import { PlatformError } from '../../core/errors.ts'
import type { MailDefinition } from '../../core/mail/definition.ts'
import type { TransactionalMail } from '../../core/mail/transactional.ts'
import { readJson } from '../http/body.ts'
import { jsonResponse } from '../http/respond.ts'
import { type RouteHandler, requireIdentity } from '../http/route.ts'

const LARGEST_BODY_BYTES = 8 * 1024

const RecordId = z.string().regex(/^[A-Za-z0-9_.:-]{1,128}$/, 'an id of 1 to 128 letters, digits and _ . : -')
/** Only the ids of records: recipient and links are the server's to look up (CONTRACT §4). */
export function emailBody(definitions: readonly MailDefinition[]) {
  const forms = definitions.flatMap(({ name, ask }) => (ask ? [formOf(name, ask.inputs)] : []))
  const [first, ...others] = forms
  // The platform has no mail that may be requested.
  if (first === undefined)
    return z.strictObject({ template: z.never(), inputs: z.strictObject({}).optional() })
  const names = definitions.flatMap(({ name, ask }) => (ask ? [name] : []))
  return z.discriminatedUnion('template', [first, ...others], {
    error: ({ code }) => (code === 'invalid_union' ? `one of ${names.join(', ')}` : undefined),
  })
}

function formOf(template: string, inputs: readonly string[]) {
  const form = z.strictObject(Object.fromEntries(inputs.map((name) => [name, RecordId])))
  return z.strictObject({
    template: z.literal(template),
    inputs: inputs.length === 0 ? form.optional() : form,
  })
}

export function emailRoute({
  definitions,
  identify,
  mail,
}: {
  readonly definitions: readonly MailDefinition[]
  readonly identify: Identify
  readonly mail: () => Promise<TransactionalMail>
}): RouteHandler {
  const body = emailBody(definitions)
  return async (route) => {
    const { requestId } = route
    const asker = await requireIdentity(identify, route)
    const { template, inputs = {} } = await readJson(route, body, LARGEST_BODY_BYTES)
    const answer = await (await mail()).ask(asker, { template, inputs })
    switch (answer.kind) {
      case 'sent':
        return jsonResponse(
          { sent: true, id: answer.id, ...(answer.queued && { queued: true }) },
          { requestId },
        )
      case 'not_sent':
        return jsonResponse({ sent: false, reason: answer.reason }, { requestId })
      case 'conflict':
        throw new PlatformError(
          'conflict',
          'A mail about this record was sent with another content; one about a changed record needs a record of its own.',
        )
      case 'not_found':
        throw new PlatformError('not_found', 'There is no such record for this caller.')
      case 'locked':
        throw new PlatformError('locked', answer.message)
    }
  }
}
