import type { CompiledMails } from './template.ts'

/** Loads compiled templates once, and tries again after a fault. */
export function compiledOnce(load: () => Promise<CompiledMails>): () => Promise<CompiledMails> {
  let loaded: Promise<CompiledMails> | undefined
  return () => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined
      throw error
    })
    return loaded
  }
}
