import type { Identity } from '../access/identity.ts'
import type { Settings } from '../env/settings.ts'
import type { CompiledMail, CompiledMails, MailBrand, Slot } from './template.ts'

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

export interface ResolvedMail<Slots = Readonly<Record<string, string>>> {
  readonly to: string
  readonly slots: Slots
  /** The record that this mail belongs to, as `booking.17`: it is mailed once for each. */
  readonly about: string
}

export type MailResolution =
  | ResolvedMail
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
  readonly value: Settings['value']
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
export const translationName = (language: string, mail: string): string => `${language}/${mail}`

/** Where templates are: `<name>.md` or `<name>.mjml`, and `layout.mjml`. */
export interface MailFolder {
  /** Absolute; relative to the package if it ships with the package. */
  readonly path: string
  readonly shipped?: boolean
  /** Language tag of its templates; English when left out. */
  readonly language?: string
}

/** A preset's mails in one language: those that the folder does not have are in the preset's own. */
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
  /** The same mails in each language that a preset ships them in. */
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

/**
 * The records that decide who may have which mail sent, to whom, and with which link (CONTRACT §4). One that the caller
 * may not use is `undefined`, as if it did not exist. `url` is absolute, or a path on the site. The store has an adapter
 * over SQL tables (docs/guides/directory.md); an embedding program may give its own.
 */
export interface Directory {
  /** An open invite of an organisation of which `admin` is an admin. */
  findInvite(query: { readonly id: string; readonly admin: string }): Promise<Invite | undefined>
  /** A login request that has not expired at `now` (UTC milliseconds). Asked for by the service role only. */
  findLoginRequest(query: { readonly id: string; readonly now: number }): Promise<LoginRequest | undefined>
  /** An exam attempt of this subject's own that was passed. */
  findPassedExam(query: { readonly id: string; readonly subject: string }): Promise<PassedExam | undefined>
}

export interface Invite {
  readonly address: string
  /** The organisation's name, as the mail shows it. */
  readonly organisation: string
  readonly url: string
  /** The organisation's plan does not cover invites: 402 for its admins. */
  readonly locked: boolean
}

export interface LoginRequest {
  readonly address: string
  readonly url: string
}

export interface PassedExam {
  /** The exam's title. */
  readonly exam: string
  /** 0 to 100. */
  readonly scorePercent: number
  readonly url: string
}

/**
 * The limit per recipient that a mail counts toward: one for each class of mail, so that mail which strangers request
 * never keeps a person from signing in. `program` has none: it is what the platform's own code sends at once.
 */
export const ALLOWANCES = ['sign-in', 'invite', 'other', 'program'] as const
export type Allowance = (typeof ALLOWANCES)[number]

/** The text of a lesson in one language, as its file has it. */
export interface LessonText {
  /** Of the other fields. */
  readonly hash: string
  readonly format: 'md' | 'mjml'
  /** A language tag. */
  readonly language: string
  readonly source: string
}

/** The texts of one lesson: the original under an empty name, translations under their language in lower case. */
export type LessonTranslations = Readonly<Record<string, LessonText>>

export interface LessonTexts {
  /** By the name of the lesson's template; undefined: the platform has no such lesson. */
  of(lesson: string): LessonTranslations | undefined
  /** Compiles a text that a lesson had before, with the layout that the lesson `like` has now. */
  compile(text: LessonText, like: string): Promise<CompiledMail>
}

export function hashOf({ format, language, source }: Omit<LessonText, 'hash'>): string {
  // The crypto module takes 6 ms of a cold start, and most commands need none of it.
  const { hash } = process.getBuiltinModule('node:crypto')
  return hash('sha256', JSON.stringify([format, language, source]), 'base64url').slice(0, 22)
}
