import { DAY_MS } from '../../core/durations.ts'
import { PlatformError } from '../../core/errors.ts'
import { textResponse } from '../http/respond.ts'
import { defineRoute, text } from '../http/route.ts'

/** The contact is as fresh as the definition that is served; a reader should ask again within a season. */
const FRESH_DAYS = 90

export const route = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'Where to report a weakness (RFC 9116)',
    description: 'As `security` of the platform definition says; 404 when it says nothing.',
    answers: [text('text/plain', 'The contact and its terms.')],
    errors: ['not_found'],
    handle:
      ({ platform: { security, language }, settings: { site }, clock }) =>
      async (c) => {
        if (security === undefined)
          throw new PlatformError('not_found', 'This platform names no contact for security reports.')
        const { contact, expires, encryption, policy, acknowledgments, languages = [language] } = security
        // The same all day, so that a copy can be compared.
        const midnight = clock.now() - (clock.now() % DAY_MS)
        const fresh = new Date(midnight + FRESH_DAYS * DAY_MS).toISOString().replace('.000', '')
        const fields: readonly (readonly [string, string | undefined])[] = [
          ...contact.map((one) => ['Contact', one] as const),
          ['Expires', expires ?? fresh],
          ['Encryption', encryption],
          ['Acknowledgments', acknowledgments],
          ['Preferred-Languages', languages.join(', ')],
          // A name of this machine is no address of the file.
          ['Canonical', site.siteUrl.startsWith('https:') ? `${site.siteUrl}${c.url.pathname}` : undefined],
          ['Policy', policy],
        ]
        const lines = fields.flatMap(([name, value]) => (value === undefined ? [] : `${name}: ${value}\n`))
        return textResponse(lines.join(''), 'text/plain; charset=utf-8')
      },
  })
