import { readPlatformEnv } from 'platformctl/config'
import platform from './platform.config.ts'

/** The kiln's API where it is configured: both halves of the key are there, and the region is one of two. */
export function kilnAccess(env: Record<string, string | undefined>) {
  const { kiln } = readPlatformEnv(platform, env)
  if (kiln === undefined) return undefined
  const region: 'eu' | 'us' = kiln.KILN_REGION
  return { region, key: kiln.KILN_API_KEY, secret: kiln.KILN_API_SECRET }
}
