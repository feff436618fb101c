import type { Finding } from '../../finding.ts'
import { cascade, elements, textOf } from './cascade.ts'
import type { LintedMail } from './mail.ts'
import { type LintRule, lintFinding } from './rules.ts'

/** Size limit of a mail's HTML: on a phone, readers pay by the byte. */
const HTML_BYTES = 40 * 1024
const SUBJECT_CHARACTERS = 60
const PREHEADER_CHARACTERS = 100
const ACTIVE = new Set([
  'script',
  'form',
  'input',
  'button',
  'iframe',
  'object',
  'embed',
  'video',
  'audio',
  'canvas',
])
/** Phrases that the public rule sets of filters score (SpamAssassin's body rules among them). */
const PHRASES =
  /\b(?:100 ?% free|act now|all new|buy now|click here|congratulations you|dear friend|double your|earn extra|free money|guaranteed income|limited time|lowest price|make money|no obligation|once in a lifetime|order now|risk[- ]free|this is not spam|urgent action|winner|you have been selected)\b/i

/** Size, parts, language and what filters mind. */
export function checkStructure(mail: LintedMail): Finding[] {
  const { rendered, document, files } = mail
  const found: Finding[] = []
  const say = (id: LintRule, cause: string, fix: string, ...needles: string[]) =>
    void found.push(lintFinding(id, cause, fix, mail.place(...needles)))

  const size = Buffer.byteLength(rendered.html)
  if (size > HTML_BYTES)
    say('html-large', `The HTML is ${(size / 1024).toFixed(1)} KB; the limit is 40 KB.`, 'Shorten the body.')

  const { subject } = rendered
  if (subject.length > SUBJECT_CHARACTERS)
    say(
      'subject-long',
      `The subject has ${subject.length} characters.`,
      `Shorten it to ${SUBJECT_CHARACTERS}.`,
      'subject:',
    )
  const letters = subject.replace(/[^\p{L}]/gu, '')
  if (
    (letters.length > 5 && letters === letters.toUpperCase() && letters !== letters.toLowerCase()) ||
    /!.*!|[!?$€£*]{2}/.test(subject)
  )
    say(
      'subject-shouts',
      'The subject shouts.',
      'Use sentence case and at most one exclamation mark.',
      'subject:',
    )
  if (/^\s*(?:re|fwd?|aw|wg)\s*:/i.test(subject))
    say('subject-pretends', 'The subject looks like a reply.', 'Remove the prefix.', 'subject:')

  const all = [...elements(document)]
  const body = all.find(({ name }) => name === 'body')
  const shown = body === undefined ? '' : textOf(body).replace(/\s+/g, ' ').trim()
  const phrase = PHRASES.exec(`${subject} ${shown}`)?.[0]
  if (phrase !== undefined)
    say(
      'words-of-spam',
      `The mail contains “${phrase}”, which spam filters penalize.`,
      'Use plain words instead.',
      phrase,
    )
  const preheader = /^preheader:\s*(.*)$/m.exec(files.source)?.[1] ?? ''
  if (preheader.length > PREHEADER_CHARACTERS)
    say(
      'preheader-long',
      `The preheader has ${preheader.length} characters.`,
      `Shorten it to ${PREHEADER_CHARACTERS}.`,
      'preheader:',
    )

  const words = (text: string) => text.split(/\s+/).filter((word) => /\p{L}/u.test(word)).length
  if (words(rendered.text) < words(shown) / 2)
    say(
      'plain-text-missing',
      'The plain-text part is less than half as long as the HTML.',
      'Remove the plain-text override, or complete it.',
      'text:',
    )
  const links = all.filter(({ name, attribs }) => name === 'a' && attribs.href !== undefined)
  if (links.length > 4 && links.length > words(shown) / 20)
    say(
      'links-many',
      `The mail has ${links.length} links in ${words(shown)} words.`,
      'Keep the ones that matter.',
    )

  const images = all.filter(({ name }) => name === 'img')
  const nameless = images.some(({ attribs }) => attribs.alt === undefined)
    ? mail.place('<img')
    : // MJML writes an empty alt of its own accord, and then nobody decided that the image says nothing.
      mail.written(/<mj-image\b(?![^>]*\salt=)/)
  if (nameless !== undefined)
    found.push(
      lintFinding(
        'image-without-alt',
        'An image has no alternative text.',
        'Describe the image in alt; use alt="" for decoration.',
        nameless,
      ),
    )
  if (images.some(({ attribs }) => /^\s*data:/i.test(attribs.src ?? '')))
    say(
      'image-embedded',
      'An image is a data: address, which Gmail and Outlook on Windows do not show.',
      'Say in text what it shows, or leave it out.',
      'data:',
    )
  if (images.length > 0 && words(shown) < images.length * 20)
    say(
      'images-without-text',
      `The mail has ${images.length} image(s) and ${words(shown)} words.`,
      'Put the important content in text.',
      '<img',
      '<mj-image',
    )

  for (const { name } of all.filter((element) => ACTIVE.has(element.name)))
    say(
      'content-active',
      `The mail contains a <${name}>.`,
      'Remove it, and link to a web page that has it.',
      `<${name}`,
    )
  if (!all.some(({ name, attribs }) => name === 'html' && attribs.lang && attribs.lang !== 'und'))
    say(
      'language-missing',
      'The HTML does not declare its language.',
      'Set lang on <mjml> in layout.mjml.',
      '<mjml',
    )
  if (
    files.definition.lesson &&
    !links.some(({ attribs }) => attribs.href === mail.compiled.slots.unsubscribeUrl?.sample)
  )
    say(
      'unsubscribe-missing',
      'The mail has no unsubscribe link in its body.',
      'Put {{footer}} into layout.mjml.',
      '<mj-body',
    )
  found.push(...hidden(mail))
  return found
}

/** Hidden text, but for the preheader: MJML hides that one, and every client expects it. */
function hidden(mail: LintedMail): Finding[] {
  const styles = cascade(mail.document, 'light')
  return [...elements(mail.document)].flatMap((element) => {
    const value = (property: string) => styles.get(element)?.get(property)?.value
    const hides =
      value('display') === 'none' || value('visibility') === 'hidden' || value('font-size') === '0'
    const text = textOf(element).trim()
    const isPreheader = value('max-height') === '0px' && value('opacity') === '0'
    if (!hides || text === '' || isPreheader) return []
    return [
      lintFinding(
        'text-hidden',
        `The text “${text.slice(0, 40)}” is hidden.`,
        'Show it or remove it.',
        mail.place(text.slice(0, 40)),
      ),
    ]
  })
}
