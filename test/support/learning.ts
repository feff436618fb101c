import { createCatalog } from '../../src/core/course/catalog.ts'
import { type Dependencies, dependenciesOf } from '../../src/core/health/verdict.ts'
import type { CompiledMail } from '../../src/core/mail/template.ts'
import { createLabels } from '../../src/core/status/words.ts'
import type { Store } from '../../src/core/store/store.ts'
import type { Handler, OpenOptions } from '../../src/daemon/embedding.ts'
import { handlersOf, type OpenedPlatform, openPlatform } from '../../src/daemon/platform.ts'
import { learning } from '../../src/presets/learning/platform.ts'

/** The default platform, taken apart for tests that are about its contents. */
export const { contract } = learning
export const SERVICES = contract.services
export const VARIABLES = contract.variables
export const RULES = contract.rules
export const catalog = createCatalog(learning.courses)
export const begin = await catalog.begin()
/** The lesson of the default course that follows `day`. */
export const nextAfter = ({ confirmedAt = 0 }: { readonly confirmedAt: number | undefined }, day: number) =>
  learning.courses[0] && catalog.next(learning.courses[0], { confirmedAt }, day)
export const nextOf = (claim: { readonly confirmedAt: number; readonly day: number }) =>
  nextAfter(claim, claim.day)
export const EVENTS = learning.events
export const EVENT_KINDS = EVENTS.map(({ name }) => name)
export const LABELS = createLabels(learning)
export const ASKS: Dependencies = dependenciesOf(learning.probes, learning.services)

/** Somebody who asked for the default course at that time, and has not confirmed. */
export function askIn({ course }: Pick<Store, 'course'>, name: string, now: number) {
  const identity = `${name}@example.com`
  const person = { course: 'quantum', identity, address: identity, id: name, tokenHash: name }
  return course.requestConfirmation({ ...person, now })
}

/** Somebody who confirmed at that time, when the first lesson is due. */
export async function enrolIn(store: Pick<Store, 'course'>, name: string, now: number): Promise<void> {
  await askIn(store, name, now)
  await store.course.confirm({ begin, tokenHash: name, now })
}

/** The path of a service's health. */
export function healthPath(service: string): string {
  return learning.services.find(({ name }) => name === service)?.health ?? ''
}

type Handlers = Readonly<Record<'web' | 'api' | 'agent', Handler>>

/** The default platform, with what only the daemon sees of it. */
export function openLearning(options: Omit<OpenOptions, 'platform'>): OpenedPlatform & Handlers {
  const opened = openPlatform({ ...options, platform: learning })
  // The default platform has exactly these.
  return { ...opened, ...(handlersOf(opened) as Handlers) }
}

export const MAILS = learning.mails.definitions
type LearningMail =
  | 'organisation-invite'
  | 'magic-link'
  | 'welcome'
  | 'subscription-confirmation'
  | 'status-confirmation'
  | 'status-notice'
  | 'exam-passed'
  | `course-day-${1 | 2 | 3 | 4 | 5 | 6 | 7}`
// The default platform has exactly these.
export const TEMPLATES = MAILS.map(({ name }) => name as LearningMail)
export const compiledMails = learning.mails.compiled as () => Promise<
  Readonly<Record<LearningMail, CompiledMail>>
>
