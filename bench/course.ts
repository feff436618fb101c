import { type Course, type CourseOptions, openCourse } from '../src/core/course/open.ts'
import type { Settings } from '../src/core/env/settings.ts'
import { silentLog, systemClock, systemRandom } from '../src/core/host.ts'
import type { Mailer } from '../src/core/mail/mailer.ts'
import { openMailer } from '../src/core/mail/open.ts'
import { secret } from '../src/core/secret.ts'
import type { Store } from '../src/core/store/store.ts'
import { catalog, compiledMails } from '../test/support/learning.ts'

/** Sends through the mail API at the address. */
export const courseMailer = (api: string): Mailer => courseMailerOver({ kind: 'api', url: api })

export function courseMailerOver(route: NonNullable<Settings['mail']>['route']): Mailer {
  return openMailer({
    compiled: compiledMails,
    mail: {
      key: secret('provider-key'),
      route,
      from: { name: 'Quantum Course', address: 'course@example.com' },
      replyTo: undefined,
    },
  })
}

/** The course over a store, with the clock and the randomness that it has in the daemon. */
export function courseOver(store: Store, mailer: Mailer, more: Partial<CourseOptions> = {}): Course {
  return openCourse({
    catalog,
    store: store.course,
    persistent: store.persistent,
    limit: 100,
    mailer,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    siteUrl: 'https://www.example.com',
    linkKey: secret('a key of thirty-two characters….'),
    ...more,
  })
}
