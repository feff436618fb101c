import { createRequire } from 'node:module'

/** Could this package be imported here? Nothing of it is loaded. */
export function isInstalled(name: string): boolean {
  try {
    return createRequire(import.meta.url).resolve(name) !== ''
  } catch {
    return false
  }
}
