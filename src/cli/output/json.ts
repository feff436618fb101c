/** One JSON document and a line end: the whole of standard output in JSON mode. */
export function jsonText(document: unknown): string {
  return `${JSON.stringify(document, null, 2)}\n`
}
