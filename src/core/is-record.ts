/** An object that is no list: what JSON calls an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What this gives; undefined if it throws. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** Calls what may fail, now or later, without harm: what it throws or rejects with is lost. */
export function swallowFaults(work: () => unknown): void {
  void (async () => work())().catch(() => {})
}

/** What a text holds as JSON; undefined for any other text. */
export const parsedJson = (text: string): unknown => attempt(() => JSON.parse(text))

/** A percent sign that begins no code stays as it is, as curl takes it. */
export const percentDecoded = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (codes) => attempt(() => decodeURIComponent(codes)) ?? codes)

/** The object that a text holds as JSON; an empty one for any other text. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> {
  const value = parsedJson(text)
  return isRecord(value) ? value : {}
}
