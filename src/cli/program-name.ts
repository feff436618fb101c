import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Context } from './context.ts'

/** How a person starts this program: `platformctl` where that is a command, otherwise through npx. */
export function programName(env: Context['env']): string {
  return isOnPath(env) ? 'platformctl' : 'npx platformctl'
}

/** Is there a command `platformctl`? Started by npm or npx there may be one that is gone with this process. */
function isOnPath(env: Context['env']): boolean {
  if (env.npm_lifecycle_event !== undefined) return false
  const folders = env.PATH?.split(path.delimiter) ?? []
  return folders.some((folder) =>
    ['platformctl', 'platformctl.cmd'].some((file) => existsSync(path.join(folder, file))),
  )
}
