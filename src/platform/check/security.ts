import { isLanguage } from '../../core/course/definition.ts'
import { knownFieldsAt, listAt, type Place, quoted, textAt } from './fault.ts'

export const SECURITY_FIELDS = [
  'contact',
  'expires',
  'encryption',
  'policy',
  'acknowledgments',
  'languages',
] as const

/** Where a weakness is reported (RFC 9116). */
export function checkSecurity(place: Place, value: unknown): void {
  if (value === undefined) return
  const fields = knownFieldsAt(place, value, 'a security contact', SECURITY_FIELDS)
  if (fields === undefined) return
  const contact = place.at('contact')
  if (fields.contact === undefined)
    contact.fault('There is no contact.', "Write it as contact: 'mailto:security@example.com'.")
  else if (typeof fields.contact === 'string')
    checkUri(contact, fields.contact, /^(?:mailto:|tel:|https:\/\/)\S+$/)
  else {
    const contacts = listAt(contact, fields.contact, 'addresses') ?? []
    if (Array.isArray(fields.contact) && contacts.length === 0)
      contact.fault('There is no contact.', "Write it as contact: 'mailto:security@example.com'.")
    for (const [index, one] of contacts.entries())
      checkUri(contact.at(index), one, /^(?:mailto:|tel:|https:\/\/)\S+$/)
  }
  const expires = textAt(place.at('expires'), fields.expires)
  if (
    expires !== undefined &&
    !(/^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(expires) && Date.parse(expires) > 0)
  )
    place
      .at('expires')
      .fault(
        `${quoted(expires)} is not a time.`,
        "Write it as expires: '2027-12-31T00:00:00Z', or leave it out.",
      )
  for (const name of ['encryption', 'policy', 'acknowledgments'] as const)
    if (fields[name] !== undefined)
      checkUri(
        place.at(name),
        fields[name],
        name === 'encryption' ? /^(?:https:\/\/|dns:|openpgp4fpr:)\S+$/ : /^https:\/\/\S+$/,
      )
  const languages =
    fields.languages === undefined
      ? []
      : (listAt(place.at('languages'), fields.languages, 'language tags') ?? [])
  for (const [index, tag] of languages.entries())
    if (typeof tag !== 'string' || !isLanguage(tag))
      place
        .at('languages')
        .at(index)
        .fault('This is not a language tag.', "Write it as languages: ['en', 'de'].")
}

function checkUri(place: Place, value: unknown, form: RegExp): void {
  const text = textAt(place, value)
  if (text !== undefined && !form.test(text))
    place.fault(
      `${quoted(text)} is not an address that this field takes.`,
      'Write it whole: https://…, or mailto:… for a contact.',
    )
}
