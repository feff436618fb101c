import type { Mail, Mailer } from '../mail/mailer.ts'
import type { MailPayload } from '../mail/sent-mail.ts'
import type { TransactionalMail } from '../mail/transactional.ts'
import type { LaneHost } from './lane.ts'
import type { MessageStore, QueuedMessage } from './message.ts'
import { createMessageLane } from './message-lane.ts'
import { MAIL, SIGN_IN } from './streams.ts'

/**
 * Sends the mails that are stored to be sent for certain; gives how many left. Sign-in mails have a lane of their own,
 * so that they wait for no other.
 */
export function createMails(
  host: LaneHost,
  {
    store,
    mailer,
    again,
    signal,
  }: {
    readonly store: MessageStore
    readonly mailer: Mailer
    /** Resolves the record of a sign-in mail anew. */
    readonly again: TransactionalMail['again']
    readonly signal: AbortSignal
  },
): () => Promise<number> {
  async function mailOf({ payload, address, createdAt }: QueuedMessage): Promise<Mail | undefined> {
    // Written by `queueable`, as JSON.
    const { name, slots = {}, record, attachments, ...mail } = JSON.parse(payload) as MailPayload
    const found = record && (await again(record.asker, { template: mail.template, inputs: record.inputs }))
    if (record && !found) return undefined
    return {
      ...mail,
      attachments: attachments?.map((one) => ({ ...one, content: Buffer.from(one.content, 'base64') })),
      to: { name, address },
      slots,
      ...found,
      date: new Date(createdAt),
    }
  }
  const lanes = [SIGN_IN, MAIL].map((stream) =>
    createMessageLane(host, {
      stream,
      store,
      mailer,
      mailOf,
      gone: 'its record is gone',
      expired: 'it could not be mailed in time',
      settlementOf: (settlement) => settlement,
      about: ({ id }) => ({ mail: id }),
      signal,
    }),
  )
  return async () => {
    const sent = await Promise.all(lanes.map((lane) => lane.wake()))
    return sent.reduce((sum, one) => sum + one, 0)
  }
}
