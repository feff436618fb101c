import { type Fields, namesAt, type Place, quoted } from './fault.ts'
import { entries, field, type Names } from './names.ts'

/** Checks `dependsOn` of services and probes: names that exist, and no circle, in which nothing would be the root cause. */
export function checkDependencies(place: Place, fields: Fields, { services, probes }: Names): void {
  const known = [...new Set([...services, ...probes.map(({ name }) => name)])]
  const needs = new Map<string, string[]>()
  const need = (name: string, other: string) => needs.set(name, [...(needs.get(name) ?? []), other])
  for (const { service, name } of probes) if (service !== name) need(service, name)
  for (const kind of ['services', 'probes'])
    for (const [name, value] of entries(fields[kind])) {
      const list = field(value, 'dependsOn')
      const here = place.at(kind).at(name).at('dependsOn')
      for (const other of namesAt(here, list, { known, what: 'a probe or a service' })) {
        const way = wayBetween(other, name, needs)
        if (way === undefined) {
          need(name, other)
          continue
        }
        // `namesAt` found it in a list.
        const there = here.at((list as readonly unknown[]).indexOf(other))
        if (other === name) there.fault(`${quoted(name)} depends on itself.`, 'Remove it from the list.')
        else
          there.fault(
            `The dependencies go round in a circle: ${[name, ...way].join(' → ')}.`,
            'Remove one of them. A service depends on its own probes: name the probe that is needed, not its service.',
          )
      }
    }
}

/** The names from one to another, both included, each of which needs the next; undefined if there is no such way. */
function wayBetween(
  from: string,
  to: string,
  needs: ReadonlyMap<string, readonly string[]>,
): readonly string[] | undefined {
  const ways = new Map([[from, [from]]])
  for (const [name, way] of ways) {
    if (name === to) return way
    for (const next of needs.get(name) ?? []) if (!ways.has(next)) ways.set(next, [...way, next])
  }
  return undefined
}
