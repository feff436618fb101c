import { createRequire } from 'node:module'

/** Whether this package could be imported here. Loads none of it. */
export function isInstalled(name: string): boolean {
  try {
    return createRequire(import.meta.url).resolve(name) !== ''
  } catch {
    return false
  }
}
