import { type CourseDefinition, isLanguage } from '../../core/course/definition.ts'
import { type MailDefinition, translationName } from '../../core/mail/definition.ts'
import { escapeHtml, mailIn } from '../../core/mail/template.ts'
import { languageOptions, languageText, previewPage, type School, say, selectField, textIn } from './page.ts'
import type { Headline, Workshop } from './workshop.ts'

/** Reads the choice out of the page's address; undefined when there are no mails. */
function chooseLanguages(query: URLSearchParams, { languages, originals }: MailLanguages) {
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
    sides: [side('left', own), right === own && !query.has('left') ? second : right] as const,
    scheme: query.get('scheme') === 'dark' ? 'dark' : 'light',
    /** One sentence for a mail that there is none of. */
    fault:
      asked !== undefined && asked !== mail.name && say`There is no mail ${asked}. This is the first one.`,
  }
}

export async function languagesPage(workshop: Workshop, school: School, query: URLSearchParams) {
  const { courses, language } = school
  const mails = mailLanguages(workshop.definitions, language)
  const choice = chooseLanguages(query, mails)
  const [only = 'en'] = mails.languages
  if (choice === undefined || mails.languages.length < 2)
    return previewPage(
      'languages',
      '',
      `<p class="blank"><strong>${say`All mails are in ${languageText(only)}.`}</strong> For a second language, put translations into folders named by it, as de/welcome.md beside welcome.md.</p>`,
    )
  const { mail, sides, scheme, fault } = choice
  const panes = sides.map(async (language) => {
    const chosen = mails.inLanguage(mail, language)
    // A translation has the name of its original, and its extension.
    const file = `${mails.originals.find(({ name }) => name === mail)?.file ?? mail}.md`
    return pane(language, { ...chosen, mail, scheme, file, ...(await workshop.headline(chosen.name, true)) })
  })
  const languages = languageOptions([...mails.languages, ...sides])
  const schemes = { options: [['light', 'Light'] as const, ['dark', 'Dark'] as const] }
  return previewPage(
    'languages',
    mail,
    `<form id="choice" method="get">
${selectField('mail', 'Mail', mail, mailGroups(mails, courses))}
${selectField('left', 'Left', sides[0], languages)}
${selectField('right', 'Right', sides[1], languages)}
${selectField('scheme', 'Color scheme', scheme, [schemes])}
<p class="field"><button>Show</button></p>
</form>
<div id="shown"><div id="faults" role="alert">${fault ? `<p>${fault}</p>` : ''}</div><div class="panes">${(await Promise.all(panes)).join('\n')}</div></div>`,
  )
}

function mailGroups({ originals }: MailLanguages, courses: readonly CourseDefinition[]) {
  const lessons = new Set(courses.flatMap((course) => course.lessons))
  const others = originals.map(({ name }) => name).filter((name) => !lessons.has(name))
  return [{ title: 'Mails', lessons: others }, ...courses].map(({ title, lessons }) => ({
    label: title,
    options: lessons.map((name) => [name, name] as const),
  }))
}

type Shown = ReturnType<MailLanguages['inLanguage']> &
  Readonly<Record<'mail' | 'scheme' | 'file', string>> &
  Headline

function pane(language: string, shown: Shown): string {
  const { mail, file, scheme } = shown
  const [own, wanted] = [languageText(shown.language), languageText(language)]
  const missing = shown.missing
    ? `<p class="missing"><strong>${say`There is no translation into ${wanted}, so readers of ${wanted} get this one, in ${own}.`}</strong> ${say`To translate it, write ${language.toLowerCase()}/${file} beside ${file}.`}</p>`
    : ''
  const mailShown =
    'fault' in shown
      ? `<p class="fault" role="alert">${escapeHtml(shown.fault)}</p>`
      : `<h3>${textIn(shown.language, shown.subject)}</h3>
<p class="quiet">${shown.preheader === '' ? 'No preview text' : textIn(shown.language, shown.preheader)}</p>
<iframe title="${say`HTML of ${mail} in ${own}`}" src="/mails/${escapeHtml(encodeURI(shown.name))}.html?scheme=${scheme}"></iframe>`
  return `<section aria-label="${escapeHtml(wanted)}"><h2>${escapeHtml(wanted)} <small>${escapeHtml(shown.name)}</small></h2>${missing}${mailShown}</section>`
}

export type MailLanguages = ReturnType<typeof mailLanguages>

const primary = (language: string) => language.toLowerCase().split('-')[0] ?? ''

export function mailLanguages(definitions: readonly MailDefinition[], platform: string) {
  const names = Object.fromEntries(definitions.map(({ name }) => [name, name]))
  const translations = definitions.flatMap(({ name, translates }) =>
    translates === undefined ? [] : { original: translates, language: languageOf(name, translates) },
  )
  return {
    /** The platform's own first. */
    languages: [...new Set([platform, ...translations.map(({ language }) => language)])],
    /** Mails that translate no other, in the order of the definition. */
    originals: definitions.filter(({ translates }) => translates === undefined),
    /** The version of a mail that a reader of this language gets; `missing`: in the platform's, as there is no translation. */
    inLanguage(mail: string, language: string) {
      const name = mailIn<string>(names, mail, language) ?? mail
      const own = name === mail ? platform : languageOf(name, mail)
      return { name, language: own, missing: primary(own) !== primary(language) }
    },
  }
}

const languageOf = (name: string, original: string) => name.slice(0, -translationName('', original).length)
