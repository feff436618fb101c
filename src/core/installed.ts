import { createRequire } from 'node:module'

const { resolve } = createRequire(import.meta.url)

/** Could this package be imported here? Nothing of it is loaded. */
export function isInstalled(name: string): boolean {
  try {
    return resolve(name) !== ''
  } catch {
    return false
  }
}
