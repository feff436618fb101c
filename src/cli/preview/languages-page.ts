import { type CourseDefinition, isLanguage } from '../../core/course/definition.ts'
import { type MailDefinition, translationName } from '../../core/mail/definition.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import { mailIn } from '../../core/mail/template.ts'
import { documentOf, type LocalPage } from '../local-page.ts'
import { FOLLOW, filled, followed, pageLinks, selectField, textIn } from './page.ts'
import { PAGES_STYLE } from './style.ts'
import { PREVIEW_TEXTS as T } from './texts.ts'
import type { Headline } from './workshop.ts'

interface LanguagesChoice {
  readonly mail: string
  readonly sides: readonly [string, string]
  readonly scheme: 'light' | 'dark'
  /** One sentence for a mail that there is none of. */
  readonly fault: string | undefined
}

/** Reads the choice out of the page's address; undefined when there are no mails. */
export function chooseLanguages(
  query: URLSearchParams,
  { languages, originals }: MailLanguages,
): LanguagesChoice | undefined {
  const asked = query.get('mail') ?? undefined
  const mail = originals.find(({ name }) => name === asked) ?? originals[0]
  const [own = 'en', second = own] = languages
  if (mail === undefined) return undefined
  const side = (name: string, otherwise: string) => {
    const tag = query.get(name) ?? ''
    return isLanguage(tag) ? tag : otherwise
  }
  const right = side('right', second)
  return {
    mail: mail.name,
    // Beside itself a mail shows nothing new.
    sides: [side('left', own), right === own && !query.has('left') ? second : right],
    scheme: query.get('scheme') === 'dark' ? 'dark' : 'light',
    fault: asked === undefined || asked === mail.name ? undefined : filled(T.unknownMail, { mail: asked }),
  }
}

interface LanguagesView {
  readonly courses: readonly CourseDefinition[]
  readonly choice: LanguagesChoice | undefined
  readonly mails: MailLanguages
  /** Headlines of the two templates, by name; a fault if one does not compile. */
  readonly headlines: Readonly<Record<string, Headline>>
}

/** The page that shows one mail in two languages, side by side. */
export function languagesPage(view: LanguagesView): LocalPage {
  const { choice, mails } = view
  const [only = 'en'] = mails.languages
  const single = `<p class="blank"><strong>${filled(T.oneLanguage, { language: languageText(only) })}</strong> ${T.oneLanguageFix}</p>`
  return documentOf({
    title: `${choice ? `${choice.mail} · ` : ''}${T.pages.languages} · platformctl preview`,
    style: PAGES_STYLE,
    body: `<header><h1>${T.pages.languages}</h1>${pageLinks('languages')}<p id="status" role="status">${T.watching}</p></header>
<main>${mails.languages.length > 1 && choice ? languagesMain(view, choice) : single}</main>`,
    script: FOLLOW,
  })
}

function languagesMain({ courses, mails, headlines }: LanguagesView, choice: LanguagesChoice): string {
  const { mail, sides, scheme, fault } = choice
  const tags = [...new Set([...mails.languages, ...sides])].map(
    (tag) => [tag, `${languageText(tag)} (${tag})`] as const,
  )
  const lessons = new Set(courses.flatMap((course) => course.lessons))
  const groups = [
    {
      label: T.mails,
      options: mails.originals.flatMap(({ name }) => (lessons.has(name) ? [] : [[name, name] as const])),
    },
    ...courses.map(({ title, lessons }) => ({
      label: title,
      options: lessons.map((name) => [name, name] as const),
    })),
  ]
  const panes = sides.map((language) => {
    const chosen = mails.inLanguage(mail, language)
    return pane({ mails, mail, language, chosen, headline: headlines[chosen.name], scheme })
  })
  return `<form id="choice" method="get"${followed()}>
${selectField({ name: 'mail', label: T.mail, chosen: mail, groups })}
${selectField({ name: 'left', label: T.left, chosen: sides[0], groups: [{ options: tags }] })}
${selectField({ name: 'right', label: T.right, chosen: sides[1], groups: [{ options: tags }] })}
${selectField({
  name: 'scheme',
  label: T.scheme,
  chosen: scheme,
  groups: [
    {
      options: [
        ['light', T.light],
        ['dark', T.dark],
      ],
    },
  ],
})}
<p class="field"><button>${T.show}</button></p>
</form>
<div id="shown"><div id="faults" role="alert">${fault ? `<p>${fault}</p>` : ''}</div><div class="panes">${panes.join('\n')}</div></div>`
}

function pane(side: {
  readonly mails: MailLanguages
  readonly mail: string
  readonly language: string
  readonly chosen: ChosenMail
  readonly headline: Headline | undefined
  readonly scheme: string
}): string {
  const { mails, mail, language, chosen, scheme } = side
  const headline: Headline = side.headline ?? { fault: T.broken }
  const [own, wanted] = [languageText(chosen.language), languageText(language)]
  // A translation has the name of its original, and its extension.
  const file = headline.file ?? `${mails.originals.find(({ name }) => name === mail)?.file ?? mail}.md`
  const missing = chosen.missing
    ? `<p class="missing"><strong>${filled(T.missingMail, { language: wanted, fallback: own })}</strong> ${filled(T.missingFix, { file: `${language.toLowerCase()}/${file}`, original: file })}</p>`
    : ''
  const mailShown =
    'fault' in headline
      ? `<p class="fault" role="alert">${escapeHtml(headline.fault)}</p>`
      : `<h3>${textIn(chosen.language, headline.subject)}</h3>
<p class="quiet">${headline.preheader === '' ? T.noPreheader : textIn(chosen.language, headline.preheader)}</p>
<iframe title="${filled(T.frameOf, { mail, language: own })}" src="/mails/${escapeHtml(encodeURI(chosen.name))}.html?scheme=${scheme}"></iframe>`
  return `<section aria-label="${escapeHtml(wanted)}"><h2>${escapeHtml(wanted)} <small>${escapeHtml(chosen.name)}</small></h2>${missing}${mailShown}</section>`
}

/** The mails of a platform by language. */
export interface MailLanguages {
  /** The platform's own first. */
  readonly languages: readonly string[]
  /** Mails that translate no other, in the order of the definition. */
  readonly originals: readonly MailDefinition[]
  /** The version of a mail that a reader of this language gets. */
  inLanguage(mail: string, language: string): ChosenMail
}

interface ChosenMail {
  readonly name: string
  readonly language: string
  /** There is no translation, so it is the platform's language instead. */
  readonly missing: boolean
}

const primary = (language: string) => language.toLowerCase().split('-')[0] ?? ''

export function mailLanguages(definitions: readonly MailDefinition[], platform: string): MailLanguages {
  const names = Object.fromEntries(definitions.map(({ name }) => [name, name]))
  const translations = definitions.flatMap(({ name, translates }) =>
    translates === undefined ? [] : { original: translates, language: languageOf(name, translates) },
  )
  return {
    languages: [...new Set([platform, ...translations.map(({ language }) => language)])],
    originals: definitions.filter(({ translates }) => translates === undefined),
    inLanguage(mail, language) {
      const name = mailIn<string>(names, mail, language) ?? mail
      const own = name === mail ? platform : languageOf(name, mail)
      return { name, language: own, missing: primary(own) !== primary(language) }
    },
  }
}

/** A name of a translation is made of its language and that of the original. */
function languageOf(name: string, original: string): string {
  return name.slice(0, -translationName('', original).length)
}

const names = new Intl.DisplayNames('en', { type: 'language', fallback: 'code' })

/** A language's name in English. */
export function languageText(language: string): string {
  return (isLanguage(language) && names.of(language)) || language
}
