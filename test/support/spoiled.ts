/** A copy of a document with a value put at a path, as `groups/kiln/rules`; `undefined` removes what is there. */
export function spoiled(document: object, path: string, value: unknown): unknown {
  const copy: unknown = structuredClone(document)
  const steps = path.split('/')
  const last = steps.pop() ?? ''
  let target = copy as Record<string, unknown>
  for (const step of steps) {
    target[step] ??= {}
    target = target[step] as Record<string, unknown>
  }
  if (value === undefined) delete target[last]
  else target[last] = value
  return copy
}
