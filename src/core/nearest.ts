import { closestMatch } from 'leven'

/** The known name that was probably meant. At most a third of it is mistyped; two slips in a short one are a swap. */
export function nearestOf(name: string, known: readonly string[]): string | undefined {
  const folded = name.toLowerCase()
  const byFolded = new Map(known.map((one) => [one.toLowerCase(), one]))
  const maxDistance = Math.max(folded.length < 3 ? 1 : 2, Math.floor(folded.length / 3))
  const close = closestMatch(folded, [...byFolded.keys()], { maxDistance })
  const begun = [...byFolded.keys()].find((one) => folded.length > 3 && one.startsWith(folded))
  return byFolded.get(close ?? begun ?? '')
}
