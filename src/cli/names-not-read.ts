import { secretBehind } from '../core/env/secret-files.ts'
import { type Report, validate } from '../core/env/validate.ts'
import type { Finding } from '../core/finding.ts'
import type { Service } from '../core/service.ts'
import type { Context } from './context.ts'
import type { LoadedEnvironment } from './environment.ts'

/**
 * One finding with the number of unknown names in the files, not counting those that a warning calls misspelled: a
 * notice, or a warning if they may be those of a definition that was not found.
 */
export function namesNotRead(
  { platform: { contract }, searched }: Pick<Context, 'platform' | 'searched'>,
  {
    loaded,
    report,
    services,
  }: { readonly loaded: LoadedEnvironment; readonly report?: Report; readonly services: readonly Service[] },
): readonly Finding[] {
  const unknown = Object.keys(loaded.env).filter(
    (name) =>
      loaded.origin(name) && contract.find(name) === undefined && secretBehind(contract, name) === undefined,
  )
  if (unknown.length === 0) return []
  const { findings } = report ?? validate(contract, loaded.env, services)
  const misspelt = new Set(
    findings.filter(({ id }) => id === 'unknown-name').flatMap(({ present }) => present),
  )
  const names = unknown.filter((name) => !misspelt.has(name))
  if (names.length === 0) return []
  const counted = names.length === 1 ? '1 name in the files is' : `${names.length} names in the files are`
  const common = { services, group: 'file', present: [], missing: [] }
  return [
    searched === undefined
      ? {
          ...common,
          id: 'names-not-read',
          severity: 'notice',
          cause: `${counted} in no group of this platform, and not checked.`,
          fix: 'Nothing to do, unless they should be checked: then add them to a group of the definition.',
        }
      : {
          ...common,
          id: 'no-definition',
          severity: 'warning',
          cause: `${counted} unknown to the default platform, which runs because no definition was found in ${searched.join(' or ')}.`,
          fix: 'Name the definition with --config. If the default platform is meant, say so with --no-config.',
        },
  ]
}
