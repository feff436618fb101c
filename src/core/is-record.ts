/** An object that is no list: what JSON calls an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What a text holds as JSON; undefined for any other text. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The object that a text holds as JSON; an empty one for any other text. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> {
  const value = parsedJson(text)
  return isRecord(value) ? value : {}
}
