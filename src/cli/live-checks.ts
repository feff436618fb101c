import { existsSync } from 'node:fs'
import path from 'node:path'
import { readSettings, type StoreAddress } from '../core/env/settings.ts'
import type { Finding } from '../core/finding.ts'
import { type LiveResult, liveFindings, runLive } from '../core/live/live.ts'
import { openNetwork } from '../core/live/network.ts'
import { liveTargets } from '../core/live/targets.ts'
import { openMailer } from '../core/mail/open.ts'
import type { Service } from '../core/service.ts'
import { readSchema } from '../core/store/open.ts'
import { type Context, dataFolder, openProgress } from './context.ts'
import type { LoadedEnvironment } from './environment.ts'

export interface DeepOptions {
  /** For all checks together. */
  readonly timeoutMs: number
  readonly dkimSelectors: readonly string[]
  readonly sendTest: boolean
  /** Where the store lies when STORE_URL is not set. */
  readonly data: string | undefined
}

/** One check may take a third of the time for all, and at most this. */
const LONGEST_CHECK_MS = 5000

/** Asks everything that the environment configures; progress on standard error of a terminal. */
export async function liveChecks(
  context: Context,
  { env, origin }: LoadedEnvironment,
  services: readonly Service[],
  options: DeepOptions,
): Promise<{ readonly results: readonly LiveResult[]; readonly findings: readonly Finding[] }> {
  const { timeoutMs, dkimSelectors, sendTest, data } = options
  const settings = readSettings(context.platform, env)
  const mailer = openMailer({ mail: settings.mail, compiled: context.platform.mails.compiled })
  const { address, jobStore } = settings.store
  const stores = [checkedStore(context, address, data), jobStore && checkedStore(context, jobStore, data)]
  const [storeSchema, jobSchema] = stores.map((one) => one && (() => readSchema(one)))
  const progress = await openProgress(context, 'live checks')
  try {
    const targets = liveTargets(
      {
        ...context.platform,
        settings,
        network: context.network ?? openNetwork(),
        now: context.clock.now(),
        isSet: (name) => settings.value(name) !== undefined,
        verifyMail: (signal) => mailer.verify(signal),
        storeSchema,
        jobSchema,
        dkimSelectors,
        sendTest: sendTest ? (await import('./command.ts')).alertTester(context, env) : undefined,
      },
      services,
    )
    const results = await runLive(context.clock, targets, {
      limitMs: Math.min(LONGEST_CHECK_MS, timeoutMs),
      deadlineMs: timeoutMs,
      signal: context.signal,
      onProgress(done, all, waiting) {
        const names = waiting.length > 0 ? `, waiting for ${waiting.join(', ')}` : ''
        progress.show(`live checks: ${done} of ${all}${names}`)
      },
    })
    return { results: results.map(({ place: _, ...one }) => one), findings: liveFindings(results, origin) }
  } finally {
    progress.end()
    // Not awaited: a connection that hangs must not hold the report back.
    void mailer.close().catch(() => {})
  }
}

/** The store of STORE_URL, or of a data folder that exists. */
function checkedStore(context: Context, address: StoreAddress | undefined, data: string | undefined) {
  if (address?.kind === 'postgres') return address
  const folder = dataFolder(context, data)
  if (address === undefined && !existsSync(folder)) return undefined
  const file = path.resolve(context.cwd, address?.file ?? path.join(folder, 'platform.sqlite'))
  return { kind: 'sqlite', file } as const
}
