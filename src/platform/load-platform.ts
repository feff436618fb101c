import type { ResolvedPlatform } from '../core/platform.ts'
import { type LoadDefinitionOptions, loadDefinition } from './load.ts'
import { resolvePlatform } from './resolve.ts'

/** Loads the definition that `file` names and makes its platform. Rejects with a DefinitionError. */
export async function loadPlatform(
  options: LoadDefinitionOptions & { readonly file: string },
): Promise<ResolvedPlatform> {
  const { exported, file, folder } = await loadDefinition(options)
  return resolvePlatform(exported, { folder, file })
}
