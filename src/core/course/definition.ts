import { attempt } from '../is-record.ts'

export type Cadence =
  /** The first at confirmation, each of the others this many milliseconds after the one before. */
  | { readonly kind: 'every'; readonly ms: number }
  /** At a local time, on chosen days of the week. */
  | {
      readonly kind: 'at'
      /** Minutes after midnight. */
      readonly minute: number
      /** An IANA time zone; undefined: the subscriber's own. */
      readonly zone: string | undefined
      /** 1, Monday, to 7, Sunday; empty: every day. */
      readonly weekdays: readonly number[]
    }

export interface Plan {
  /** Names of templates, in order. */
  readonly lessons: readonly string[]
  readonly cadence: Cadence
  /** The least time between two lessons to one subscriber. */
  readonly spacingMs: number
  /** For each lesson, the hashes of its texts by language, the original's under ''; undefined: the newest texts. */
  readonly texts?: readonly Readonly<Record<string, string>>[]
}

/** A course by mail: lessons in order, one at a time. */
export interface CourseDefinition extends Plan {
  readonly id: string
  readonly title: string
  /** `latest`: enrolments that have begun follow a changed course; otherwise they keep the one that they began with. */
  readonly follow: 'start' | 'latest'
  /** Who can read the lessons as pages: everybody, people with the link of a mail, or nobody. Default: everybody. */
  readonly pages?: 'public' | 'link' | false
}

export const isPublic = ({ pages = 'public' }: Pick<CourseDefinition, 'pages'>) => pages === 'public'

/** The course of enrolments that are older than the choice: there was one. */
export const FIRST_COURSE = 'quantum'

/** Visitors subscribe to incidents under this name: as to a course, but without lessons. No course may have it. */
export const NOTICES = 'status'

/** Old names of ICU, such as PST or IST: Intl takes them and Temporal does not, and some mean several zones. */
const ICU_ZONE = /^(?:A[CEGRS]|B[ES]|C[ANST]|E[AC]|I[ES]|JS|MI|N[ES]|P[LNRS]|[SV]S)T$/i

export function isTimeZone(text: string): boolean {
  // Offsets are accepted by Intl as well, and know no summer time.
  if (text.length > 64 || /^[+-]/.test(text) || ICU_ZONE.test(text)) return false
  return attempt(() => new Intl.DateTimeFormat('en', { timeZone: text })) !== undefined
}

/** Whether a text is a language tag that everything in `Intl` takes, as `de` or `pt-BR`. */
export function isLanguage(text: string): boolean {
  if (!/^[a-z]{2,3}(?:-[a-z\d]{2,8}){0,3}$/i.test(text)) return false
  // `old-v2` has the form of a tag, and `Intl.DisplayNames` throws at it.
  return attempt(() => Intl.getCanonicalLocales(text)) !== undefined
}
