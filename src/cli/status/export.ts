import path from 'node:path'
import type { Environment } from '../../core/env/environment.ts'
import { openHistory, openSharedHistory } from '../../core/store/open.ts'
import { type Context, dataFolder } from '../context.ts'
import { assertExists, openLocal, storeAddress } from '../local.ts'

/** The platform over this machine's store, with the record of its health: that of all machines if they share a store. */
export async function openRecord(context: Context, env: Environment, data: string | undefined) {
  const address = storeAddress(context, env, data)
  const file = path.join(dataFolder(context, data), 'history.sqlite')
  const shared = await openSharedHistory(address)
  if (!shared) await assertExists(context, { kind: 'sqlite', file })
  const history = shared ? { ...shared, persistent: true, record: async () => {} } : await openHistory(file)
  const { platform, close } = await openLocal(context, env, data, history)
  return { platform, close: () => close().finally(() => history.close()) }
}
