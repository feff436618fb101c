import { auditEntry } from '../core/audit.ts'
import type { Course } from '../core/course/open.ts'
import { type Environment, readSettings, type StoreAddress } from '../core/env/settings.ts'
import type { Channel } from '../core/incidents/lanes.ts'
import type { SendOutcome } from '../core/mail/mailer.ts'
import type { AnalyticsMaintenance, StoreMaintenance } from '../core/store/maintenance.ts'
import type { Store } from '../core/store/store.ts'
import type { OpenedPlatform } from '../daemon/platform.ts'
import { commandOn } from './command.ts'
import { type Context, failure, operatorOf } from './context.ts'
import { loadEnvironment } from './environment.ts'
import { STORE, type Values } from './inputs.ts'

/** Opens the platform over the store of the env files or the data folder, works with it, and closes it. */
export async function withPlatform<T>(
  context: Context,
  { envFile, data }: Values<typeof STORE>,
  work: (opened: { readonly platform: OpenedPlatform; readonly env: Environment }) => Promise<T>,
): Promise<T> {
  const { openLocal } = await import('./local.ts')
  const { env } = await loadEnvironment(context, envFile)
  const { platform, close } = await openLocal(context, env, data)
  return work({ platform, env }).finally(close)
}

export async function withStore<T>(
  context: Context,
  { envFile, data }: Values<typeof STORE>,
  work: (opened: { readonly store: Store; readonly env: Environment }) => Promise<T>,
): Promise<T> {
  const { openLocalStore } = await import('./local.ts')
  const { env } = await loadEnvironment(context, envFile)
  const store = await openLocalStore(context, env, data)
  return work({ store, env }).finally(() => store.close())
}

export const platformCommand = commandOn(STORE, withPlatform)
export const courseCommand = commandOn<
  typeof STORE,
  { readonly platform: OpenedPlatform; readonly course: Course }
>(STORE, (context, values, work) =>
  withPlatform(context, values, async ({ platform }) => work({ platform, course: await platform.course() })),
)
export const storeCommand = commandOn(STORE, withStore)

interface Place {
  readonly env: Environment
  readonly address: StoreAddress
  /** Opens the store without migrating it; closed when the command ends. */
  readonly maintenance: () => Promise<StoreMaintenance>
  /** The same for the file of analytics; undefined when there is none. */
  readonly analyticsMaintenance: () => Promise<AnalyticsMaintenance | undefined>
}

const placeCommand = (mustExist: boolean) =>
  commandOn<typeof STORE, Place>(STORE, async (context, { envFile, data }, work) => {
    const { assertExists, storeAddress, storeFaultError } = await import('./local.ts')
    const { openAnalyticsMaintenance, openMaintenance } = await import('../core/store/open.ts')
    const { env } = await loadEnvironment(context, envFile)
    const address = storeAddress(context, env, data)
    if (mustExist) await assertExists(context, address)
    let opened: StoreMaintenance | undefined
    let openedAnalytics: AnalyticsMaintenance | undefined
    try {
      return await work({
        env,
        address,
        maintenance: async () => (opened ??= await openMaintenance(address)),
        analyticsMaintenance: async () => (openedAnalytics ??= await openAnalyticsMaintenance(address)),
      })
    } catch (error) {
      if (error instanceof Error && error.name === 'StoreMaintenanceError') throw failure(error.message)
      throw storeFaultError(address, error)
    } finally {
      await opened?.close()
      await openedAnalytics?.close()
    }
  })
/** A command that maintains a store that is there already. */
export const onStore = placeCommand(true)
/** A command that maintains a store, and may make it. */
export const onPlace = placeCommand(false)

export function auditOf(
  context: Context,
  entry: Pick<Parameters<typeof auditEntry>[0], 'action' | 'subject' | 'details'>,
) {
  const { clock, random } = context
  return auditEntry({ ...entry, operator: operatorOf(context), now: clock.now(), random })
}

/** Sends a test alert on a channel, which says that nothing is wrong. */
export function alertTester(context: Context, env: Environment): (name: string) => Promise<SendOutcome> {
  const [now, id] = [context.clock.now(), Buffer.from(context.random.bytes(9)).toString('base64url')]
  const open = {
    reason: undefined,
    closedAt: undefined,
    acknowledgedAt: undefined,
    acknowledgedBy: undefined,
  }
  const incident = { id, cause: 'test', service: 'web', affected: [], openedAt: now, seenAt: now, ...open }
  return async (name) => {
    const { alertId } = await import('../core/incidents/lanes.ts')
    const channel = (await alertChannelsOf(context, env)).find((one) => one.name === name)
    if (channel === undefined) throw new TypeError(`there is no channel ${name}`)
    return channel.tell({ id: alertId(id, 'test'), kind: 'test', incident, at: now })
  }
}

export async function alertChannelsOf(context: Context, env: Environment): Promise<readonly Channel[]> {
  const { alertChannels } = await import('../daemon/alerts.ts')
  const { platform, clock } = context
  return alertChannels(clock, platform, readSettings(platform, env))
}
