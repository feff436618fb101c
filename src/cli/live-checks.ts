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
import { type Context, dataFolder } from './context.ts'
import type { LoadedEnvironment } from './environment.ts'
import { openProgress } from './terminal.ts'

/** One check may take a third of the time for all, and at most this. */
const LONGEST_CHECK_MS = 5000

/** Asks everything that the environment configures; progress on standard error of a terminal. */
export async function liveChecks(
  context: Context,
  input: {
    readonly loaded: LoadedEnvironment
    readonly services: readonly Service[]
    /** For all checks together. */
    readonly timeoutMs: number
    readonly dkimSelectors: readonly string[]
    /** Sends a test alert on each channel too. */
    readonly sendTest: boolean
    /** Where the store lies when STORE_URL is not set. */
    readonly data: string | undefined
  },
): Promise<{ readonly results: readonly LiveResult[]; readonly findings: readonly Finding[] }> {
  const {
    loaded: { env, origin },
    services,
    timeoutMs,
    dkimSelectors,
    sendTest,
    data,
  } = input
  const settings = readSettings(context.platform, env)
  const mailer = openMailer({ mail: settings.mail, compiled: context.platform.mails.compiled })
  const address = checkedStore(context, settings.store.address, data)
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
        storeSchema: address && (() => readSchema(address)),
        dkimSelectors,
        sendTest: sendTest ? (await import('./opened.ts')).alertTester(context, env) : undefined,
      },
      services,
    )
    const results = await runLive(context.clock, targets, {
      limitMs: Math.min(LONGEST_CHECK_MS, timeoutMs),
      deadlineMs: timeoutMs,
      signal: context.signal,
      onProgress: (done, all, waiting) =>
        progress.show(
          `live checks: ${done} of ${all}${waiting.length > 0 ? `, waiting for ${waiting.join(', ')}` : ''}`,
        ),
    })
    return {
      results: results.map(({ place: _, ...shown }) => shown),
      findings: liveFindings(results, origin),
    }
  } finally {
    progress.end()
    // Not awaited: a connection that hangs must not hold the report back.
    void mailer.close().catch(() => {})
  }
}

/** The store of STORE_URL, or of a data folder that exists. */
function checkedStore(
  context: Context,
  address: StoreAddress | undefined,
  data: string | undefined,
): StoreAddress | undefined {
  if (address?.kind === 'sqlite') return { kind: 'sqlite', file: path.resolve(context.cwd, address.file) }
  const folder = dataFolder(context, data)
  return (
    address ??
    (existsSync(folder) ? { kind: 'sqlite', file: path.join(folder, 'platform.sqlite') } : undefined)
  )
}
