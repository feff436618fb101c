import * as z from 'zod'
import type { Identify } from '../../core/access/identity.ts'
import { PlatformError } from '../../core/errors.ts'
import type { TransactionalMail } from '../../core/mail/transactional.ts'
import { readJson } from '../http/body.ts'
import { requireIdentity } from '../http/identity.ts'
import { jsonResponse } from '../http/respond.ts'
import type { Handler } from '../http/route.ts'

const LARGEST_BODY_BYTES = 8 * 1024

const RecordId = z.string().regex(/^[A-Za-z0-9_.:-]{1,128}$/, 'an id of 1 to 128 letters, digits and _ . : -')
const NoInputs = z.strictObject({}).optional()

/** Only the id of a record: recipient and links are the server's to look up (CONTRACT §4). */
export const EmailBody = z.discriminatedUnion(
  'template',
  [
    z.strictObject({
      template: z.literal('organisation-invite'),
      inputs: z.strictObject({ inviteId: RecordId }),
    }),
    z.strictObject({
      template: z.literal('magic-link'),
      inputs: z.strictObject({ loginRequestId: RecordId }),
    }),
    z.strictObject({
      template: z.literal('exam-passed'),
      inputs: z.strictObject({ examAttemptId: RecordId }),
    }),
    z.strictObject({ template: z.literal('welcome'), inputs: NoInputs }),
    z.strictObject({ template: z.literal('subscription-confirmation'), inputs: NoInputs }),
  ],
  'one of organisation-invite, magic-link, exam-passed, welcome, subscription-confirmation',
)

export function emailRoute({
  identify,
  mail,
}: {
  readonly identify: Identify
  readonly mail: () => Promise<TransactionalMail>
}): Handler {
  return async (route) => {
    const { requestId } = route
    const asker = await requireIdentity(identify, route)
    const asked = await readJson(route, EmailBody, LARGEST_BODY_BYTES)
    const answer = await (await mail())(asker, asked)
    switch (answer.kind) {
      case 'sent':
        return jsonResponse({ sent: true, id: answer.id }, { requestId })
      case 'not_sent':
        return jsonResponse({ sent: false, reason: answer.reason }, { requestId })
      case 'not_found':
        throw new PlatformError('not_found', 'There is no such record for this caller.')
      case 'locked':
        throw new PlatformError('locked', 'The plan of this organisation does not cover invites.')
    }
  }
}
