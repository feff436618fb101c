import { cascade, elements, textOf } from './cascade.ts'
import type { LintedMail } from './mail.ts'
import type { LintRule } from './rules.ts'

/** Size limit of a mail's HTML: on a phone, readers pay by the byte. */
const HTML_BYTES = 40 * 1024
const SUBJECT_CHARACTERS = 60
const PREHEADER_CHARACTERS = 100
const ACTIVE = 'script form input button iframe object embed video audio canvas'.split(' ')
/** Phrases that the public rule sets of filters score (SpamAssassin's body rules among them). */
const PHRASES =
  /\b(?:100 ?% free|act now|all new|buy now|click here|congratulations you|dear friend|double your|earn extra|free money|guaranteed income|limited time|lowest price|make money|no obligation|once in a lifetime|order now|risk[- ]free|this is not spam|urgent action|winner|you have been selected)\b/i

/** Size, parts, language and what filters mind. */
export function checkStructure(mail: LintedMail): void {
  const { rendered, document, files } = mail
  const say = (id: LintRule, cause: string, ...needles: string[]) =>
    mail.report(id, cause, mail.place(...needles))

  const size = Buffer.byteLength(rendered.html)
  if (size > HTML_BYTES) say('html-large', `The HTML is ${(size / 1024).toFixed(1)} KB; the limit is 40 KB.`)

  const { subject } = rendered
  if (subject.length > SUBJECT_CHARACTERS)
    say('subject-long', `The subject has ${subject.length} characters.`, 'subject:')
  const letters = subject.replace(/[^\p{L}]/gu, '')
  const isAllCapitals = letters === letters.toUpperCase() && letters !== letters.toLowerCase()
  if ((letters.length > 5 && isAllCapitals) || /!.*!|[!?$€£*]{2}/.test(subject))
    say('subject-shouts', 'The subject shouts.', 'subject:')
  if (/^\s*(?:re|fwd?|aw|wg)\s*:/i.test(subject))
    say('subject-pretends', 'The subject looks like a reply.', 'subject:')

  const all = [...elements(document)]
  const body = all.find(({ name }) => name === 'body')
  const shown = body === undefined ? '' : textOf(body).replace(/\s+/g, ' ').trim()
  const phrase = PHRASES.exec(`${subject} ${shown}`)?.[0]
  if (phrase !== undefined)
    say('words-of-spam', `The mail contains “${phrase}”, which spam filters penalize.`, phrase)
  const preheader = /^preheader:(.*)$/m.exec(files.source)?.[1]?.trim() ?? ''
  if (preheader.length > PREHEADER_CHARACTERS)
    say('preheader-long', `The preheader has ${preheader.length} characters.`, 'preheader:')

  const count = (text: string) => text.split(/\s+/).filter((word) => /\p{L}/u.test(word)).length
  const words = count(shown)
  if (count(rendered.text) < words / 2)
    say('plain-text-missing', 'The plain-text part is less than half as long as the HTML.', 'text:')
  const links = all.filter(({ name, attribs }) => name === 'a' && attribs.href !== undefined)
  if (links.length > 4 && links.length > words / 20)
    say('links-many', `The mail has ${links.length} links in ${words} words.`)

  const images = all.filter(({ name }) => name === 'img')
  const nameless = images.some(({ attribs }) => attribs.alt === undefined)
    ? mail.place('<img')
    : // MJML writes an empty alt of its own accord, and then nobody decided that the image says nothing.
      mail.written(/<mj-image\b(?![^>]*\salt=)/)
  if (nameless !== undefined) mail.report('image-without-alt', 'An image has no alternative text.', nameless)
  if (images.some(({ attribs }) => /^\s*data:/i.test(attribs.src ?? '')))
    say(
      'image-embedded',
      'An image is a data: address, which Gmail and Outlook on Windows do not show.',
      'data:',
    )
  if (images.length > 0 && words < images.length * 20)
    say(
      'images-without-text',
      `The mail has ${images.length} image(s) and ${words} words.`,
      '<img',
      '<mj-image',
    )

  for (const { name } of all.filter((element) => ACTIVE.includes(element.name)))
    say('content-active', `The mail contains a <${name}>.`, `<${name}`)
  if (!all.some(({ name, attribs }) => name === 'html' && attribs.lang && attribs.lang !== 'und'))
    say('language-missing', 'The HTML does not declare its language.', '<mjml')
  const unsubscribe = mail.compiled.slots.unsubscribeUrl?.sample
  if (files.definition.lesson && !links.some(({ attribs }) => attribs.href === unsubscribe))
    say('unsubscribe-missing', 'The mail has no unsubscribe link in its body.', '<mj-body')
  checkHidden(mail)
}

/** Hidden text, but for the preheader: MJML hides that one, and every client expects it. */
function checkHidden(mail: LintedMail): void {
  const styles = cascade(mail.document, 'light')
  for (const element of elements(mail.document)) {
    const value = (property: string) => styles.get(element)?.get(property)?.value
    const hides =
      value('display') === 'none' || value('visibility') === 'hidden' || value('font-size') === '0'
    const text = textOf(element).trim()
    const isPreheader = value('max-height') === '0px' && value('opacity') === '0'
    if (hides && text !== '' && !isPreheader)
      mail.report('text-hidden', `The text “${text.slice(0, 40)}” is hidden.`, mail.place(text.slice(0, 40)))
  }
}
