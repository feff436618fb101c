import type { Define } from '../command.ts'
import { cancel, enrol, list, resendConfirmation, set } from '../course/enrolments.ts'
import { erase, resolve, resume, show, status } from '../course/people.ts'
import { exportPeople, importPeople } from '../course/transfer.ts'

export const define: Define = () => ({
  description:
    'Manage courses and the people in them: counts, one address, enrolment, erasure, and deliveries that need a decision.',
  examples: ['status --data /var/lib/platformctl', 'show ada@example.com', 'resolve SUBSCRIPTION retry'],
  commands: {
    status,
    show,
    list,
    enrol,
    set,
    export: exportPeople,
    import: importPeople,
    cancel,
    'resend-confirmation': resendConfirmation,
    erase,
    resume,
    resolve,
  },
})
