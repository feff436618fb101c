import { parseAccept } from 'hono/utils/accept'
import { isLanguage } from '../../core/course/definition.ts'

/** No browser names more than a few dozen. */
const MOST_NAMES = 64

/** What an Accept or Accept-Language header names, in lower case, the best first. */
export const acceptedOf = (header: string | null | undefined) =>
  parseAccept(header ?? '')
    .slice(0, MOST_NAMES)
    .flatMap(({ type, q }) => (q > 0 ? [{ type: type.toLowerCase(), q }] : []))

/** The languages that a reader wants, the first first: that of the link, then those of the browser. */
export function languagesOf(request: Request, url: URL): readonly string[] {
  const asked = url.searchParams.get('language') ?? ''
  const wanted = acceptedOf(request.headers.get('accept-language'))
  return [asked.toLowerCase(), ...wanted.map(({ type }) => type)].filter(isLanguage)
}
