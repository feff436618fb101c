import type { Finding, Location, Severity } from '../../finding.ts'

const rule =
  (severity: Severity) =>
  (meaning: string, fix = '') => ({ severity, meaning, fix })
const [error, warning, notice] = [rule('error'), rule('warning'), rule('notice')]

/** Every id that `platformctl email lint` gives: how bad it is, what it means, and what to do. */
export const LINT_RULES = {
  'template-broken': error(
    'The template does not compile, so the mail cannot be sent. The finding gives the file, line and reason.',
    'Correct this line.',
  ),
  'template-unused': warning(
    'No mail uses this file. Its name may be mistyped, or the mail was removed.',
    'Name it like a mail, as platformctl email list shows them, or remove it.',
  ),
  'translation-missing': warning(
    'The platform has mails in this language, and this one is not among them: its readers get the original. Or the package ships the mail, and not in the language of the platform.',
  ),
  'language-unspoken': notice(
    'The platform, or a translation of its mails, is in a language that platformctl has no texts in. Its pages and the words that it adds to mails are then in English; your own texts stay as they are.',
  ),
  'link-without-route': error(
    'A link points to a path that the platform does not serve, so readers would get an error page.',
    'Link to a page that the platform serves; /openapi.json lists them.',
  ),
  'link-unsafe': error(
    'A link is relative, or uses a scheme that mail clients block or warn about. Links in mails must be absolute http or https URLs, or mailto.',
    'Write the full URL, starting with https://.',
  ),
  'link-misleads': error(
    'The link text shows one URL and the link opens another. Spam filters and readers take that for phishing.',
    'Describe the destination in the link text, or show the actual URL.',
  ),
  'link-shortened': warning(
    'Spam filters distrust shortened links, because they hide their destination. Use the full URL.',
    'Use the URL it redirects to.',
  ),
  'html-large': warning(
    'The HTML is larger than 40 KB. Large mails load slowly on phones, and Gmail clips them at 102 KB.',
    'Shorten the body.',
  ),
  'contrast-low': error(
    'The contrast between text and background is too low in the light or dark color scheme. WCAG 2.2 AA requires 4.5:1, or 3:1 for large text.',
    'Increase the contrast between text and background.',
  ),
  'support-missing': warning(
    'A major mail client does not support this HTML or CSS (caniemail.com), and the mail may be hard to read there.',
  ),
  'support-partial': notice('A major mail client supports this HTML or CSS only in part (caniemail.com).'),
  'plain-text-missing': error(
    'The plain-text part is empty or much shorter than the HTML. Readers who see plain text miss the rest, and spam filters distrust such mails.',
    'Remove the plain-text override, or complete it.',
  ),
  'subject-long': warning(
    'Mail clients truncate subjects at about 60 characters, and sooner on phones.',
    'Shorten it to 60.',
  ),
  'subject-shouts': warning(
    'Most spam filters penalize subjects in capitals, with several exclamation marks or with runs of symbols.',
    'Use sentence case and at most one exclamation mark.',
  ),
  'subject-pretends': warning(
    'A subject that starts with Re: or Fwd: suggests an earlier conversation that never happened. Spam filters penalize this.',
    'Remove the prefix.',
  ),
  'words-of-spam': warning(
    'Spam filters penalize advertising phrases. Use plain words instead.',
    'Use plain words instead.',
  ),
  'preheader-long': notice(
    'Mail clients show only about 100 characters of the preheader next to the subject.',
    'Shorten it to 100.',
  ),
  'links-many': warning(
    'The mail has too many links for the amount of text. Spam filters penalize this.',
    'Keep the ones that matter.',
  ),
  'image-without-alt': error(
    'An image has no alternative text. Most mail clients block images by default, so readers see nothing in its place.',
    'Describe the image in alt; use alt="" for decoration.',
  ),
  'images-without-text': warning(
    'The mail is mostly images. Spam filters cannot read them, and most mail clients block them by default.',
    'Put the important content in text.',
  ),
  'image-embedded': warning(
    'An image is a data: address. Gmail and Outlook on Windows show nothing in its place. An https address does not compile: it would tell its server who reads the mail and when.',
    'Say in text what it shows, or leave it out.',
  ),
  'text-hidden': warning(
    'The mail contains hidden text. Spam filters treat that as deception.',
    'Show it or remove it.',
  ),
  'content-active': error(
    'Scripts, forms, frames and embedded objects do not work in mails, and spam filters reject them.',
    'Remove it, and link to a web page that has it.',
  ),
  'language-missing': error(
    'The HTML does not declare its language, so screen readers have to guess the pronunciation.',
    'Set lang on <mjml> in layout.mjml.',
  ),
  'unsubscribe-missing': error(
    'A mail of the course has no unsubscribe link in its body. Gmail and Yahoo require one.',
    'Put {{footer}} into layout.mjml.',
  ),
}

export type LintRule = keyof typeof LINT_RULES

/** A finding. `fix` is what to do, where the rule alone does not say. */
export function lintFinding(id: LintRule, cause: string, location?: Location, fix?: string): Finding {
  const { severity, fix: usual } = LINT_RULES[id]
  const common = { services: ['web'], group: 'mail', present: [], missing: [] }
  return { id, severity, ...common, cause, fix: fix ?? usual, ...(location && { location }) }
}
