import { boundedBody } from '../../network/bounded-body.ts'

const PATIENCE_MS = 5000
const MOST_BYTES = 64 * 1024
const MOST_KEPT = 20

/**
 * Fetches small texts over HTTPS and keeps the certificates among them: their names change with their content. Never
 * follows a redirect, which could lead away from the host that was checked.
 */
export function createFetchText(get: typeof fetch = fetch): (url: string) => Promise<string> {
  const kept = new Map<string, string>()
  return async (url) => {
    const known = kept.get(url)
    if (known !== undefined) return known
    const response = await get(url, { redirect: 'error', signal: AbortSignal.timeout(PATIENCE_MS) })
    const body = await boundedBody(response.body, MOST_BYTES)
    if (!response.ok) throw new RangeError(`the answer is ${response.status}`)
    const text = body.toString()
    if (new URL(url).pathname.endsWith('.pem')) {
      if (kept.size >= MOST_KEPT) kept.clear()
      kept.set(url, text)
    }
    return text
  }
}
