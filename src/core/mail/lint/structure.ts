import { colord } from 'colord'
import { type Element, isTag } from 'domhandler'
import { blend, type Colour, parseColour } from '../../colour.ts'
import { shortened } from '../../sentences.ts'
import { cascade, elements, ownText, type Scheme, textOf } from './cascade.ts'
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
  const embedded = 'An image is a data: address, which Gmail and Outlook on Windows do not show.'
  if (images.some(({ attribs }) => /^\s*data:/i.test(attribs.src ?? '')))
    say('image-embedded', embedded, 'data:')
  const few = `The mail has ${images.length} image(s) and ${words} words.`
  if (images.length > 0 && words < images.length * 20) say('images-without-text', few, '<img', '<mj-image')

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

/** The host of every sample link; a real mail has the platform's own address instead. */
const SAMPLE_HOST = 'www.example.com'
const SHOWN_HOST = /^\s*(?:https?:\/\/)?((?:[a-z0-9-]+\.)+[a-z]{2,})(?:[/?#]\S*)?\s*$/i
const SHORTENERS = 'bit.ly t.co tinyurl.com goo.gl ow.ly is.gd buff.ly rb.gy cutt.ly'.split(' ')

/** Every link: absolute, honest about where it leads, and to a page that exists when it leads to the platform. */
export function checkLinks(mail: LintedMail, pages: readonly string[]): void {
  const served = pages.map((path) => new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`))
  for (const anchor of elements(mail.document)) {
    const href = anchor.attribs.href
    if (anchor.name !== 'a' || href === undefined) continue
    const slot = Object.entries(mail.compiled.slots).find(([, { sample }]) => sample === href)?.[0]
    const place = mail.place(slot === undefined ? href : `${slot}:`)
    const url = URL.canParse(href) ? new URL(href) : undefined
    if (url === undefined || !/^(?:https?|mailto):$/.test(url.protocol)) {
      mail.report('link-unsafe', `The link ${href} is not an absolute URL.`, place)
      continue
    }
    // A site that somebody else built has pages of its own; below these, only the engine answers.
    const ours = mail.files.brand === undefined || /^\/(?:api|lessons)\//.test(url.pathname)
    const named = slot === undefined ? 'The link' : `The link of the slot ${slot}`
    const unserved = `${named} leads to ${url.pathname}, which the platform does not serve.`
    if (ours && url.hostname === SAMPLE_HOST && !served.some((page) => page.test(url.pathname)))
      mail.report('link-without-route', unserved, place)
    if (SHORTENERS.includes(url.hostname))
      mail.report('link-shortened', `The link ${href} is shortened.`, place)
    const shown = SHOWN_HOST.exec(textOf(anchor))?.[1]
    if (shown !== undefined && url.protocol !== 'mailto:' && site(shown) !== site(url.hostname))
      mail.report('link-misleads', `The link text shows ${shown}, but the link opens ${url.hostname}.`, place)
  }
}

const site = (host: string) => host.toLowerCase().replace(/^www\./, '')

/** A browser's default colors (HTML §15.3, `color-scheme`). */
const CANVAS: Record<Scheme, { ink: Colour; ground: Colour; link: Colour }> = {
  light: { ink: colord('#000000'), ground: colord('#ffffff'), link: colord('#0000ee') },
  dark: { ink: colord('#ffffff'), ground: colord('#121212'), link: colord('#9e9eff') },
}

/** Checks the contrast of every text of the mail with its background, in both color schemes. */
export function checkContrast(mail: LintedMail): void {
  for (const scheme of ['light', 'dark'] as const) {
    const styles = cascade(mail.document, scheme)
    const declared = (element: Element, property: string) => styles.get(element)?.get(property)?.value
    for (const element of elements(mail.document)) {
      const text = ownText(element).trim()
      const above = [element]
      for (let at = element.parent; at !== null; at = at.parent) if (isTag(at)) above.push(at)
      if (text === '' || above.some(({ name }) => INVISIBLE.has(name))) continue
      if (above.some((one) => declared(one, 'display') === 'none')) continue
      const ink = inkOf(above, declared, scheme)
      const ground = groundOf(above, declared, scheme)
      if (ink === undefined || ground === undefined) continue
      const ratio = blend(ink, ground).contrast(ground)
      const needed = isLarge(above, declared) ? 3 : 4.5
      const low = `The text “${shortened(text.replace(/\s+/g, ' '), 40)}” has a contrast of ${ratio.toFixed(1)}:1 in the ${scheme} scheme; the minimum is ${needed}:1.`
      const fix = scheme === 'dark' ? UNDER_DARK : undefined
      if (ratio < needed) mail.report('contrast-low', low, mail.place(text.slice(0, 40)), fix)
    }
  }
}

const UNDER_DARK = 'Increase the contrast between text and background, under prefers-color-scheme: dark.'

type Declared = (element: Element, property: string) => string | undefined

const INVISIBLE = new Set(['head', 'style', 'script', 'title'])

function inkOf(above: readonly Element[], declared: Declared, scheme: Scheme): Colour | undefined {
  for (const element of above) {
    const value = declared(element, 'color')
    if (value !== undefined && value !== 'inherit') return parseColour(value)
    if (element.name === 'a' && element.attribs.href !== undefined && value === undefined)
      return CANVAS[scheme].link
  }
  return CANVAS[scheme].ink
}

/** The first opaque background, with translucent layers above it blended in; undefined where it is an image. */
function groundOf(above: readonly Element[], declared: Declared, scheme: Scheme): Colour | undefined {
  const layers: Colour[] = []
  for (const element of above) {
    const background = declared(element, 'background')
    if (background !== undefined && /url\(|gradient\(/.test(background)) return undefined
    const colour = parseColour(declared(element, 'background-color') ?? background?.split(/\s+/)[0] ?? '')
    if (colour === undefined) continue
    layers.push(colour)
    if (colour.alpha() === 1) break
  }
  return layers.reduceRight((ground, layer) => blend(layer, ground), CANVAS[scheme].ground)
}

/** WCAG: 24 px, or 18.66 px and bold. */
function isLarge(above: readonly Element[], declared: Declared): boolean {
  const first = (property: string) => above.map((one) => declared(one, property)).find(Boolean)
  const size = Number.parseFloat(first('font-size') ?? '16')
  const weight =
    first('font-weight') ?? (above.some(({ name }) => /^(?:h[1-6]|b|strong|th)$/.test(name)) ? 'bold' : '400')
  return size >= 24 || (size >= 18.66 && (weight === 'bold' || Number(weight) >= 700))
}
