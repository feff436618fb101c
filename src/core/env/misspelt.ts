import type { Contract } from './contract.ts'
import { fileNameOf } from './secret-files.ts'

/** Names that CI systems, shells and frameworks set: one edit away from a name of ours, and no misspelling of it. */
const NOT_OURS = new Set(['APP_URL', 'APT_URL', 'APIS_URL', 'STORE_URI', 'LOG_LEVELS'])

/**
 * The known name that `name` is most likely a misspelling of: one edit away (insertion, deletion, substitution,
 * transposition), or the same but for case and separators. Undefined when there is none.
 */
export function nearestName(contract: Contract, name: string): string | undefined {
  if (NOT_OURS.has(name) || name.length < 5) return undefined
  const known = knownNames(contract)
  const folded = fold(name)
  const same = known.find(([one]) => one === folded) ?? known.find(([, one]) => withinOneEdit(name, one))
  return same?.[1]
}

type Known = readonly (readonly [folded: string, name: string])[]

/** Made when first asked for: most environments hold no name that is not known. */
const made = new WeakMap<Contract, Known>()

/** The variables, then the files of secrets. */
function knownNames(contract: Contract): Known {
  const found = made.get(contract)
  if (found) return found
  const files = contract.variables.flatMap(({ name, secret }) => (secret ? [fileNameOf(name)] : []))
  const names = [...contract.variables.map(({ name }) => name), ...files]
  const known = names.map((name) => [fold(name), name] as const)
  made.set(contract, known)
  return known
}

function fold(name: string): string {
  return name.toUpperCase().replace(/[^A-Z0-9]/g, '')
}

/** Damerau-Levenshtein distance ≤ 1, in one pass: strip what both share at the ends and look at the rest. */
function withinOneEdit(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let [endA, endB] = [a.length, b.length]
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA -= 1
    endB -= 1
  }
  const [restA, restB] = [a.slice(start, endA), b.slice(start, endB)]
  if (restA.length <= 1 && restB.length <= 1) return true
  return restA.length === 2 && restB.length === 2 && restA[0] === restB[1] && restA[1] === restB[0]
}
