import { createRequire } from 'node:module'

const require = createRequire(new URL('./peers/package.json', import.meta.url))

/**
 * A package that is measured beside ours, from the folder of peers: they are installed by `npm run bench:peers` and are no
 * dependency of anything else. The caller says what it uses of it.
 */
export function peer<Module>(name: string): Module {
  try {
    return require(name) as Module
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND')
      throw new Error(`the peers are not installed: npm run bench:peers`, { cause: error })
    throw error
  }
}
