import path from 'node:path'
import type { Environment } from '../../core/env/settings.ts'
import { secret } from '../../core/secret.ts'
import { openHistory, openSharedHistory } from '../../core/store/open.ts'
import { publisher } from '../../witness/files.ts'
import { type Context, dataFolder, wrongUsage } from '../context.ts'
import { isAddress } from '../health/targets.ts'
import { assertExists, openLocal, storeAddress, storeFaultError } from '../local.ts'

export function openPublisher({ clock, cwd }: Context, env: Environment, target: string) {
  if (!isAddress(target)) {
    if (/^[a-z][a-z\d+.-]+:\/\//i.test(target))
      throw wrongUsage(
        'the target is no address of a bucket: https://HOST/BUCKET, without name, password or query; S3_KEY and S3_SECRET hold them.',
      )
    return publisher(clock, path.resolve(cwd, target))
  }
  const { S3_KEY: id, S3_SECRET: key, S3_REGION: region } = env
  if (!id || !key) throw wrongUsage(`${target} is the address of a bucket: set S3_KEY and S3_SECRET.`)
  return publisher(clock, target, { id, secret: secret(key), region })
}

/** The platform over this machine's store, with the record of its health: that of all machines if they share a store. */
export async function openRecord(context: Context, env: Environment, data: string | undefined) {
  const address = storeAddress(context, env, data)
  const file = path.join(dataFolder(context, data), 'history.sqlite')
  const shared = await openSharedHistory(address)
  if (!shared) await assertExists(context, { kind: 'sqlite', file })
  const own = () =>
    openHistory(file).catch((error: unknown) => Promise.reject(storeFaultError(address, error)))
  const history = shared ? { ...shared, persistent: true, record: async () => {} } : await own()
  const { platform, close } = await openLocal(context, env, data, history)
  return { platform, close: () => close().finally(() => history.close()) }
}
