import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Catalog from '../../src/core/course/catalog.ts'
import type * as Hours from '../../src/core/course/hours.ts'
import type * as Links from '../../src/core/course/links.ts'
import type * as Open from '../../src/core/course/open.ts'
import type * as LocalTime from '../../src/core/course/zones.ts'
import type * as Errors from '../../src/core/errors.ts'
import type * as Causes from '../../src/core/incidents/causes.ts'
import type * as Conditions from '../../src/core/incidents/conditions.ts'
import type * as Pacing from '../../src/core/mail/feedback/pacer.ts'
import type * as Feedback from '../../src/core/mail/feedback/store.ts'
import type * as Mailer from '../../src/core/mail/open.ts'
import type * as Secret from '../../src/core/secret.ts'
import type * as Stores from '../../src/core/store/open.ts'
import type * as Alerts from '../../src/daemon/alerts.ts'

/** The code under simulation: ours, or a copy of it with a mutation. */
export type Core = Awaited<ReturnType<typeof loadCore>>

/** `root` is the folder that holds `src` and `templates`. */
export async function loadCore(root: string) {
  const load = async <T>(file: string): Promise<T> =>
    (await import(pathToFileURL(path.join(root, 'src/core', file)).href)) as T
  const { createCatalog } = await load<typeof Catalog>('course/catalog.ts')
  const { createHours, createWakes } = await load<typeof Hours>('course/hours.ts')
  const { openCourse } = await load<typeof Open>('course/open.ts')
  const { openMailer } = await load<typeof Mailer>('mail/open.ts')
  const { createPacer } = await load<typeof Pacing>('mail/feedback/pacer.ts')
  const { conditionsReport, lateBefore } = await load<typeof Conditions>('incidents/conditions.ts')
  const { followRound } = await load<typeof Causes>('incidents/causes.ts')
  const { startAlerts } = await load<typeof Alerts>('../daemon/alerts.ts')
  const { openStore, openMaintenance, restoreStore } = await load<typeof Stores>('store/open.ts')
  const { applyFeedback, suppressionChange } = await load<typeof Feedback>('mail/feedback/store.ts')
  const { suppressionHash, hashToken } = await load<typeof Links>('course/links.ts')
  const { secret } = await load<typeof Secret>('secret.ts')
  const { PlatformError } = await load<typeof Errors>('errors.ts')
  const { zones } = await load<typeof LocalTime>('course/zones.ts')
  return {
    createCatalog,
    createHours,
    createWakes,
    openCourse,
    openMailer,
    createPacer,
    conditionsReport,
    lateBefore,
    followRound,
    startAlerts,
    openStore,
    openMaintenance,
    restoreStore,
    applyFeedback,
    suppressionChange,
    suppressionHash,
    hashToken,
    secret,
    PlatformError,
    zones,
  }
}
