import { openPlatform } from 'platformctl'

/** One for the process: Next may evaluate a module once for each route. */
globalThis.__platform ??= openPlatform({ env: process.env })

export const platform = globalThis.__platform
