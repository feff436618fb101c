import { closestMatch } from 'leven'

/** The known name that was probably meant: at most a third of it is mistyped, or letters have changed places. */
export function nearestOf(name: string, known: readonly string[]): string | undefined {
  const folded = name.toLowerCase()
  const byFolded = new Map(known.map((one) => [one.toLowerCase(), one]))
  const names = [...byFolded.keys()]
  const close = closestMatch(folded, names, { maxDistance: Math.max(1, Math.floor(folded.length / 3)) })
  const swapped = names.find((one) => lettersOf(one) === lettersOf(folded))
  const begun = names.find((one) => folded.length > 3 && one.startsWith(folded))
  return byFolded.get(close ?? swapped ?? begun ?? '')
}

const lettersOf = (name: string) => [...name].sort().join('')
