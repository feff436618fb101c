/** The fields that have a value. */
export function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  // What is undefined is left out, so each of the others has its type without it.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
}
