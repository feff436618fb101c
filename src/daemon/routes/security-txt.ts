import { DAY_MS } from '../../core/durations.ts'
import { PlatformError } from '../../core/errors.ts'
import type { SecurityContact } from '../../core/platform.ts'
import { ROUTES } from '../../core/routes.ts'
import { textResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'

/** The contact is as fresh as the definition that is served; a reader should ask again within a season. */
const FRESH_DAYS = 90

/** Where to report a weakness (RFC 9116), as the definition says; no such page when it says nothing. */
export function securityTxtRoute(input: {
  readonly contact: SecurityContact | undefined
  readonly language: string
  readonly siteUrl: string
  readonly now: () => number
}): RouteHandler {
  return async ({ requestId }) => {
    if (input.contact === undefined)
      throw new PlatformError('not_found', 'This platform names no contact for security reports.')
    return textResponse(securityTxt({ ...input, contact: input.contact, now: input.now() }), {
      requestId,
      type: 'text/plain; charset=utf-8',
    })
  }
}

function securityTxt({
  contact: { contact, expires, encryption, policy, acknowledgments, languages },
  language,
  siteUrl,
  now,
}: {
  readonly contact: SecurityContact
  readonly language: string
  readonly siteUrl: string
  readonly now: number
}): string {
  // The same all day, so that a copy can be compared.
  const midnight = now - (now % DAY_MS)
  const fields: readonly (readonly [string, string | undefined])[] = [
    ...contact.map((one) => ['Contact', one] as const),
    ['Expires', expires ?? new Date(midnight + FRESH_DAYS * DAY_MS).toISOString().replace('.000', '')],
    ['Encryption', encryption],
    ['Acknowledgments', acknowledgments],
    ['Preferred-Languages', (languages ?? [language]).join(', ')],
    // A name of this machine is no address of the file.
    ['Canonical', siteUrl.startsWith('https:') ? `${siteUrl}${ROUTES.securityTxt.path}` : undefined],
    ['Policy', policy],
  ]
  return fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}\n`])).join('')
}
