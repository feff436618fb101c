import { LESSON_SLOTS, type MailDefinition, type MailSet } from '../../core/mail/definition.ts'
import { baseMailSet, baseMails, shipped } from '../base/mails.ts'

const [confirmation, statusConfirmation, statusNotice, magicLink, welcome] = baseMails

/** In the order in which they are sent. */
export const learningLessons = Array.from({ length: 7 }, (_, index) => `course-day-${index + 1}`)

/** The mails of the default platform; their templates are in `templates/`. */
const learningMails: readonly MailDefinition[] = [
  {
    name: 'organisation-invite',
    slots: { organisation: 'text', inviteUrl: 'url' },
    allowance: 'invite',
    ask: {
      by: 'person',
      inputs: ['inviteId'],
      async resolve({ inviteId: id = '' }, { asker, directory, absolute }) {
        const invite = await directory.findInvite({ id, admin: asker.subject })
        if (!invite) return undefined
        if (invite.locked) return { locked: 'The plan of this organisation does not cover invites.' }
        const slots = { organisation: invite.organisation, inviteUrl: absolute(invite.url) }
        return { to: invite.address, slots, about: `invite.${id}` }
      },
    },
  },
  magicLink,
  welcome,
  confirmation,
  {
    name: 'exam-passed',
    slots: { exam: 'text', score: 'text', resultUrl: 'url' },
    ask: {
      by: 'person',
      inputs: ['examAttemptId'],
      async resolve({ examAttemptId: id = '' }, { asker, directory, absolute }) {
        const passed = await directory.findPassedExam({ id, subject: asker.subject })
        if (!passed) return undefined
        const slots = {
          exam: passed.exam,
          score: `${passed.scorePercent} %`,
          resultUrl: absolute(passed.url),
        }
        return { to: asker.email, slots, about: `exam.${id}` }
      },
    },
  },
  statusConfirmation,
  statusNotice,
  ...learningLessons.map((name) => ({ name, slots: LESSON_SLOTS, lesson: true })),
]

export const learningMailSet: MailSet = {
  definitions: learningMails,
  folders: [{ path: 'templates', shipped: true }, ...baseMailSet.folders],
  compiled: shipped(() => import('../../../templates/compiled/mails.json', { with: { type: 'json' } })),
}
