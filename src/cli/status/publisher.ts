import path from 'node:path'
import type { Environment } from '../../core/env/environment.ts'
import { secret } from '../../core/secret.ts'
import { publisher } from '../../witness/publish.ts'
import type { Context } from '../context.ts'
import { wrongUsage } from '../exit.ts'
import { isAddress } from '../health/targets.ts'

/** Keeps the status as files where `target` says. */
export function openPublisher({ clock, cwd }: Context, env: Environment, target: string) {
  if (!isAddress(target)) return publisher(clock, path.resolve(cwd, target))
  const { S3_KEY: id, S3_SECRET: key, S3_REGION: region } = env
  if (!id || !key) throw wrongUsage(`${target} is the address of a bucket: set S3_KEY and S3_SECRET.`)
  return publisher(clock, target, { id, secret: secret(key), region })
}
