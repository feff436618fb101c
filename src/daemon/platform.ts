import { systemClock } from '../core/clock.ts'
import { validate } from '../core/env/validate.ts'
import type { Log } from '../core/log.ts'
import { createSendEmail, createSendMail } from '../core/mail/send-email.ts'
import { systemRandom } from '../core/random.ts'
import type { Service } from '../core/service.ts'
import { openApp } from './app.ts'
import { openCourses } from './courses.ts'
import type { Handler, OpenOptions, Operations } from './embedding.ts'
import { serveAll } from './serve.ts'

/** Without a log of the program's own, nothing that it should hear of stays silent: each event is told once. */
function processWarnings(): Log {
  const told = new Set<string>()
  const warn: Log['warn'] = (code, message) => {
    if (told.has(code)) return
    told.add(code)
    process.emitWarning(message, { type: 'platformctl', code })
  }
  return { debug() {}, info() {}, warn, error: warn }
}

/** What the daemon and the CLI use besides the public operations. */
export type OpenedPlatform = ReturnType<typeof openPlatform>

/** Opens a platform for a program, the daemon or a command. */
export function openPlatform(options: OpenOptions) {
  const { clock = systemClock, random = systemRandom, log = processWarnings(), env, platform } = options
  const app = openApp({ clock, timer: systemClock, random, log }, options)
  const { settings, stores, mailService, course } = app
  const { mailer, held, tally } = mailService
  const services = serveAll(app)
  const sendEmail = createSendEmail(mailer, clock, platform.mails, { held, kept: app.keptMail })
  let closing: Promise<void> | undefined
  const operations: Operations = {
    sendEmail,
    mail: createSendMail(sendEmail, random),
    async dispatch({ limit = settings.dispatch.limit, signal } = {}) {
      if (!(Number.isInteger(limit) && limit >= 0) && limit !== Infinity)
        throw new RangeError('the limit of a dispatch is a whole number, or Infinity for none')
      return (await course()).dispatch({ limit, ...(signal && { signal }) })
    },
    courses: openCourses(course),
    async health(service, { deep = false } = {}) {
      const served = services.get(service)
      if (served === undefined) throw new RangeError(`this process does not serve ${service}`)
      return served.health.check({ deep })
    },
    validate: () => validate(platform.contract, env),
    close() {
      // Close each part before the parts that it uses. A store or mailer passed in by the caller is not closed.
      closing ??= closeAll([
        async () => (await course.opened())?.stopDispatching(),
        async () => (await course.opened())?.close(),
        () => tally.flush(),
        async () => options.mailer ?? mailer.close(),
        async () => (await app.checkout?.opened())?.close(),
        async () => app.limiter.close(),
        async () => (await app.analytics?.opened())?.close(),
        async () => options.store ?? (await stores.store.opened())?.close(),
        async () => (await app.sharedHistory.opened())?.close(),
        async () => settings.store.jobStore && (await stores.jobStore.opened())?.close(),
      ])
      return closing
    },
  }
  return {
    ...app,
    ...operations,
    operations,
    /** The services that this process serves, by name. */
    services,
    /** What visitors see of the status, for files. */
    keptStatus: async () => (await import('./routes/status.ts')).keptStatus(app),
  }
}

/** Closes one after the other, all of them whatever becomes of one; rejects with the first fault. */
async function closeAll(ends: readonly (() => Promise<unknown>)[]): Promise<void> {
  const faults: unknown[] = []
  for (const end of ends) await end().catch((fault: unknown) => faults.push(fault))
  if (faults.length > 0) throw faults[0]
}

/** A handler for each service that the platform serves, by name. */
export function handlersOf({ services }: OpenedPlatform): Readonly<Record<Service, Handler>> {
  return Object.fromEntries([...services].map(([name, { handler }]) => [name, handler]))
}
