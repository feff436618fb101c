import { onlyPostgresBy } from '../support/stores.ts'

onlyPostgresBy()

// What `npm test` runs over a file alone.
await import('../core/course/confirmations.test.ts')
await import('../core/course/courses.test.ts')
await import('../core/course/following.test.ts')
await import('../core/course/leases.test.ts')
await import('../core/course/notices.test.ts')
await import('../core/course/people.test.ts')
await import('../core/course/pinned-texts.test.ts')
await import('../core/course/hours.test.ts')
await import('../core/mail/held-keys.test.ts')
await import('../core/store/stalled.test.ts')
await import('../daemon/alerts.test.ts')
await import('../daemon/durable-mail.test.ts')
await import('../e2e/emergency-stop.test.ts')
