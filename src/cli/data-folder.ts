import path from 'node:path'
import type { Context } from './context.ts'

/**
 * Where the daemon and the store commands keep their files: `--data`, else the folder of the daemon that is used, else
 * `.platformctl` in the working directory.
 */
export function dataFolder(context: Context, option: string | undefined): string {
  return path.resolve(context.cwd, option ?? context.daemon?.dataFolder ?? '.platformctl')
}
