import { LESSON_SLOTS, type MailDefinition, type MailSet } from '../../core/mail/definition.ts'
import type { CompiledMails } from '../../core/mail/template.ts'
import { once } from '../../core/once.ts'
import { baseMailSet, baseMails } from '../base/mails.ts'

const [confirmation, statusConfirmation, statusNotice, magicLink, welcome] = baseMails

/** In the order in which they are sent. */
export const learningLessons = [
  'course-day-1',
  'course-day-2',
  'course-day-3',
  'course-day-4',
  'course-day-5',
  'course-day-6',
  'course-day-7',
] as const

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
  compiled: once(async () => {
    const { default: compiled } = await import('../../../templates/compiled/mails.json', {
      with: { type: 'json' },
    })
    // The JSON's inferred type is its literal shape; the compiler that wrote it returns compiled mails.
    return compiled as unknown as CompiledMails
  }),
}
