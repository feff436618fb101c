import type { Identity } from '../access/identity.ts'
import type { MailBrand } from './brand.ts'
import type { Directory } from './directory.ts'
import type { LessonTexts } from './lesson-text.ts'
import type { Allowance } from './sent-mail.ts'
import type { CompiledMails, Slot } from './template.ts'

export type MailAnswer =
  /** `queued`: it is stored, and will be sent whatever becomes of this process. */
  | { readonly kind: 'sent'; readonly id: string; readonly queued?: true }
  | { readonly kind: 'not_sent'; readonly reason: string }
  /** A mail about the same record was sent with another content. */
  | { readonly kind: 'conflict' }
  /** No such record, or one of another caller: the answer is the same. */
  | { readonly kind: 'not_found' }
  /** The caller may ask, but the plan does not cover it. */
  | { readonly kind: 'locked'; readonly message: string }

/** The mail that a request resolves to; undefined if there is no such record. */
export type MailResolution =
  | {
      readonly to: string
      readonly slots: Readonly<Record<string, string>>
      /** The record, as `invite.17`: one mail for each. */
      readonly about: string
    }
  /** The caller may ask, but the plan does not cover it; the answer says so in this sentence. */
  | { readonly locked: string }
  /** The mail was dealt with elsewhere, with this answer. */
  | { readonly answer: MailAnswer }
  | undefined

export interface MailContext<Asker extends Identity = Identity> {
  readonly asker: Asker
  readonly directory: Directory
  /** UTC milliseconds. */
  readonly now: number
  /** A path on the site as an absolute address; one that is absolute stays. Anything else ends the request unsent. */
  readonly absolute: (url: string) => string
  /** Mails the link of an unconfirmed subscription again; the course keeps its limits. */
  readonly confirmAgain: (email: string) => Promise<MailAnswer>
}

interface Ask<Kind extends Identity['kind']> {
  readonly by: Kind
  /** Inputs of a request, each the id of a record. */
  readonly inputs: readonly string[]
  readonly resolve: (
    inputs: Readonly<Record<string, string>>,
    context: MailContext<Extract<Identity, { readonly kind: Kind }>>,
  ) => MailResolution | Promise<MailResolution>
}

/** Rules for requesting a mail over HTTP: who may, with which inputs, and how the server's own records resolve them. */
export type MailAsk = Ask<'person'> | Ask<'service'>

export interface MailDefinition {
  readonly name: string
  /** The slots that the template must have. If left out, the template's front matter declares them. */
  readonly slots?: Readonly<Record<string, Slot['type']>>
  /** Lets callers request the mail over HTTP. If left out, only code, a course or the engine sends it. */
  readonly ask?: MailAsk
  /** Mails of one allowance share the limit for each recipient; those without one share another. */
  readonly allowance?: Allowance
  /** A lesson of a course: it needs an unsubscribe link. */
  readonly lesson?: boolean
  /** Where its template is if not in the folders of the set, and its name there without the extension. */
  readonly folder?: MailFolder
  readonly file?: string
  /** Where the layout is looked up after that folder, before the folders of the set. */
  readonly layouts?: readonly MailFolder[]
  /** The mail that this one translates; the recipient's language chooses between them. */
  readonly translates?: string
}

/** The name of a mail in another language, as that of its file: `de/welcome`. */
export function translationName(language: string, mail: string): string {
  return `${language}/${mail}`
}

/** Where templates are: `<name>.md` or `<name>.mjml`, and `layout.mjml`. */
export interface MailFolder {
  /** Absolute; relative to the package if it ships with the package. */
  readonly path: string
  readonly shipped?: boolean
  /** Language tag of its templates; English when left out. */
  readonly language?: string
}

/** A preset's mails in another language: those that the folder does not have are in the preset's own. */
export interface MailTranslation {
  readonly language: string
  readonly folder: MailFolder
  readonly compiled: () => Promise<CompiledMails>
}

/** The mails of a platform: what each is for, where its templates are, and how they compiled. */
export interface MailSet {
  readonly definitions: readonly MailDefinition[]
  /** The first folder that has a template supplies it. */
  readonly folders: readonly MailFolder[]
  /** The same mails as a preset ships them in other languages. */
  readonly translations?: readonly MailTranslation[]
  /** Values that layouts take from the platform; undefined for templates that take none. */
  readonly brand?: MailBrand
  /** Where `platformctl email build` writes, if these mails are not those of a preset. */
  readonly build?: string
  /** The compiled templates, loaded at the first call. */
  readonly compiled: () => Promise<CompiledMails>
  /** The lessons' texts as they were when `compiled` was loaded. Default: as they are when first asked for. */
  readonly texts?: () => Promise<LessonTexts>
}

/** Slots that the dispatcher fills in every lesson. */
export const LESSON_SLOTS = { lessonUrl: 'url', unsubscribeUrl: 'url' } as const

/** Those of a lesson that has no page. */
export const PAGELESS_SLOTS = { unsubscribeUrl: 'url' } as const

/** Slots that the dispatcher fills in every notice of an incident or an announcement. */
export const NOTICE_SLOTS = {
  title: 'text',
  text: 'text',
  when: 'text',
  statusUrl: 'url',
  unsubscribeUrl: 'url',
} as const
