import { statfs } from 'node:fs/promises'
import type { Clock } from '../core/clock.ts'
import type { Settings } from '../core/env/settings.ts'
import { type CertificateCheck, conditionsReport, lateBefore } from '../core/incidents/conditions.ts'
import type { Service } from '../core/service.ts'
import type { Store } from '../core/store/store.ts'
import type { Outcomes } from './metrics/outcomes.ts'

export interface ConditionsOptions {
  readonly settings: Settings
  readonly store: Pick<Store, 'course' | 'persistent' | 'sending'>
  readonly dataFolder: string
  readonly certificates: () => readonly CertificateCheck[]
  /** Services that run in this process. */
  readonly services: readonly Service[]
  /** Builds of the services elsewhere. */
  readonly neighbours: ReadonlyMap<Service, string | null>
  readonly mailRefused: () => string | undefined
  /** Judges what this process counted in the last ten minutes. */
  readonly outcomes?: () => Promise<Partial<Outcomes>>
  readonly clock: Pick<Clock, 'now'>
  readonly freeSpace?:
    | ((folder: string) => Promise<{ readonly freeBytes: number; readonly bytes: number }>)
    | undefined
}

/** Checks what no health probe covers: certificates, late or paused lessons, disk, builds, configuration and refused mail. */
export function createConditions({
  settings,
  store,
  dataFolder,
  certificates,
  services,
  neighbours,
  mailRefused,
  outcomes: judge = async () => ({}),
  clock,
  freeSpace = spaceOf,
}: ConditionsOptions): () => Promise<ReturnType<typeof conditionsReport>> {
  const own = settings.site.buildStamp ?? null
  const halfConfigured = [...settings.groups].flatMap(([name, state]) =>
    state === 'half-configured' ? [name] : [],
  )
  const sendsLessons = store.persistent && settings.mail !== undefined
  return async () => {
    const now = clock.now()
    const [lessonsDueSince, holds, disk, outcomes] = await Promise.all([
      // A read error is not reported here: the store and the disk have their own probes.
      sendsLessons ? dueSince(store.course, now).catch(() => undefined) : NONE_DUE,
      store.persistent ? store.sending.holds().catch(() => undefined) : [],
      freeSpace(dataFolder).catch(() => undefined),
      judge(),
    ])
    return conditionsReport(
      {
        certificates: certificates(),
        ...(lessonsDueSince && { lessonsDueSince }),
        ...(disk && { disk }),
        builds: new Map([...neighbours, ...services.map((name) => [name, own] as const)]),
        halfConfigured,
        mailRefused: mailRefused(),
        outcomes,
        ...(holds && { holds }),
      },
      now,
    )
  }
}

const NONE_DUE = { at: undefined, stalledAt: undefined }

async function dueSince(course: Store['course'], now: number) {
  const [first] = await course.listDue(now, 1)
  return {
    at: first?.nextAttemptAt,
    stalledAt: await course.stalledSince({ now, before: lateBefore(now) }),
  }
}

async function spaceOf(folder: string) {
  const { bavail, bfree, blocks, bsize } = await statfs(folder)
  // Blocks reserved for root count as free only for root.
  return { freeBytes: (process.getuid?.() === 0 ? bfree : bavail) * bsize, bytes: blocks * bsize }
}
