/** Circular imports among files and among folders, a list of names for each circle. */
export interface Circles {
  readonly files: readonly (readonly string[])[]
  readonly folders: readonly (readonly string[])[]
}

/** The imports of each file; a path outside the map is left out. */
type Graph = ReadonlyMap<string, Iterable<string>>

/**
 * Finds the circles among files and among folders. A folder is one node beside the files and folders next to it, so
 * that `mail` and `env` must not import each other, while a file may use a folder beside it and be used by another.
 */
export function findCircles(imports: Graph): Circles {
  const circles = [...levelsOf(imports).values()].flatMap(circlesOf)
  return {
    files: circlesOf(imports),
    folders: circles.filter((circle) => circle.some((node) => !imports.has(node))),
  }
}

/** For each folder, the imports between the files and folders that are directly in it. */
function levelsOf(imports: Graph): ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>> {
  const levels = new Map<string, Map<string, Set<string>>>()
  for (const [from, targets] of imports) {
    for (const to of targets) {
      if (!imports.has(to)) continue
      const [a, b] = [from.split('/'), to.split('/')]
      const shared = a.findIndex((part, index) => part !== b[index])
      const [node, other] = [a.slice(0, shared + 1).join('/'), b.slice(0, shared + 1).join('/')]
      const parent = a.slice(0, shared).join('/')
      const level = levels.get(parent) ?? new Map<string, Set<string>>()
      levels.set(parent, level)
      level.set(node, (level.get(node) ?? new Set()).add(other))
      if (!level.has(other)) level.set(other, new Set())
    }
  }
  return levels
}

/** The strongly connected parts of more than one node (Tarjan). */
function circlesOf(graph: Graph): string[][] {
  const circles: string[][] = []
  const index = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: string[] = []
  const visit = (node: string) => {
    index.set(node, index.size)
    lowest.set(node, index.get(node) ?? 0)
    open.push(node)
    for (const next of graph.get(node) ?? []) {
      if (!graph.has(next)) continue
      if (!index.has(next)) visit(next)
      else if (!open.includes(next)) continue
      lowest.set(node, Math.min(lowest.get(node) ?? 0, lowest.get(next) ?? 0))
    }
    if (lowest.get(node) !== index.get(node)) return
    const circle = open.splice(open.indexOf(node))
    if (circle.length > 1) circles.push(circle.sort())
  }
  for (const node of graph.keys()) if (!index.has(node)) visit(node)
  return circles
}
