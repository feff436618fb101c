import type { Finding, Severity } from '../../finding.ts'

/** Every id that `platformctl email lint` gives: how bad it is, and what it means. */
export const LINT_RULES = {
  'template-broken': {
    severity: 'error',
    meaning:
      'The template does not compile, so the mail cannot be sent. The finding names the file, the line and the reason.',
  },
  'template-unused': {
    severity: 'warning',
    meaning:
      'No mail of the platform uses this file, so nothing sends it. Its name may be mistyped, or the mail is gone.',
  },
  'link-without-route': {
    severity: 'error',
    meaning:
      'A link of the mail leads to a path that the platform does not serve: a reader would find an error page.',
  },
  'link-unsafe': {
    severity: 'error',
    meaning:
      'A link is relative, or of a scheme that mail clients refuse or warn of. In a mail a link is an absolute http or https address, or mailto.',
  },
  'link-misleads': {
    severity: 'error',
    meaning:
      'The text of a link looks like an address and the link leads to another. Filters take that for phishing, and so do readers.',
  },
  'link-shortened': {
    severity: 'warning',
    meaning: 'Filters distrust shortened links, because they hide where they lead. Give the full address.',
  },
  'html-large': {
    severity: 'warning',
    meaning:
      'The HTML is larger than 40 KB. Gmail clips at 102 KB, and a mail on a phone is paid for by the byte.',
  },
  'contrast-low': {
    severity: 'error',
    meaning:
      'Text and ground are too much alike in one of the colour schemes: WCAG 2.2 AA asks for 4.5:1, and for 3:1 where the text is large.',
  },
  'support-missing': {
    severity: 'warning',
    meaning:
      'A mail client that matters does not support this piece of HTML or CSS (caniemail.com), and the mail may be hard to read without it.',
  },
  'support-partial': {
    severity: 'notice',
    meaning: 'A mail client that matters supports this piece of HTML or CSS with exceptions (caniemail.com).',
  },
  'plain-text-missing': {
    severity: 'error',
    meaning:
      'The plain-text part is empty or says much less than the HTML. Readers without HTML would miss it, and filters distrust such mails.',
  },
  'subject-long': {
    severity: 'warning',
    meaning: 'Mail clients cut a subject at about 60 characters, and on a phone earlier.',
  },
  'subject-shouts': {
    severity: 'warning',
    meaning:
      'A subject in capitals, with several exclamation marks or a run of symbols counts as spam with most filters.',
  },
  'subject-pretends': {
    severity: 'warning',
    meaning: 'A subject that begins with Re: or Fwd: pretends an earlier exchange; filters and readers mind.',
  },
  'words-of-spam': {
    severity: 'warning',
    meaning: 'Filters count phrases of advertising against a mail. Say the same in plain words.',
  },
  'preheader-long': {
    severity: 'notice',
    meaning: 'Mail clients show about 100 characters of the preheader beside the subject.',
  },
  'links-many': {
    severity: 'warning',
    meaning: 'A mail with more links than a sentence or two each looks like a link farm to filters.',
  },
  'image-without-alt': {
    severity: 'error',
    meaning: 'An image has no alternative text, and most mail clients show none until the reader asks.',
  },
  'images-without-text': {
    severity: 'warning',
    meaning: 'The mail is mostly images. Filters cannot read them, and readers see none until they ask.',
  },
  'text-hidden': {
    severity: 'warning',
    meaning: 'The mail hides text from the reader. Filters take that for an attempt to deceive them.',
  },
  'content-active': {
    severity: 'error',
    meaning: 'Scripts, forms, frames and embedded objects do not work in mails, and filters reject them.',
  },
  'language-missing': {
    severity: 'error',
    meaning: 'The HTML does not say its language, so screen readers guess how to pronounce it.',
  },
  'unsubscribe-missing': {
    severity: 'error',
    meaning: 'A mail of the course has no unsubscribe link in its body. Gmail and Yahoo require one.',
  },
} as const satisfies Record<string, { severity: Severity; meaning: string }>

export type LintRule = keyof typeof LINT_RULES

/** Where in the operator's files a finding points, when it can be found there. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

export function lintFinding(id: LintRule, cause: string, fix: string, location: Place): Finding {
  return {
    id,
    severity: LINT_RULES[id].severity,
    services: ['web'],
    group: 'mail',
    present: [],
    missing: [],
    cause,
    fix,
    location,
  }
}
