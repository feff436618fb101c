import { isLanguage } from '../../core/course/definition.ts'
import { type MailDefinition, translationName } from '../../core/mail/definition.ts'
import { mailIn } from '../../core/mail/template.ts'

/** The mails of a platform by language. */
export interface MailLanguages {
  /** The platform's own first. */
  readonly languages: readonly string[]
  /** Mails that translate no other, in the order of the definition. */
  readonly originals: readonly MailDefinition[]
  /** The version of a mail that a reader of this language gets. */
  inLanguage(mail: string, language: string): ChosenMail
}

export interface ChosenMail {
  /** The name of its template. */
  readonly name: string
  /** Language of the template. */
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
