import { formsOf } from '../address.ts'
import type { MessageHost } from '../delivery/messages.ts'
import { newId } from '../host.ts'
import type { Secret } from '../secret.ts'
import type { Catalog } from './catalog.ts'
import { FIRST_COURSE } from './definition.ts'
import { suppressionHashes } from './links.ts'
import type { CourseMessageSettlement, CourseStore } from './store.ts'
import type { Claim } from './subscription.ts'

export interface CourseHost extends MessageHost<CourseMessageSettlement> {
  readonly store: CourseStore
  readonly catalog: Catalog
  readonly siteUrl: string
  /** Keys of links: the first makes them, and any opens them. */
  readonly keys: readonly [Secret, ...Secret[]]
  /** Keys may be missing, so a link that none opens may be genuine. */
  readonly areLinksInDoubt?: boolean
  /** Recognizes an erased address. It is kept in the store, so that changing a secret forgets no erasure. */
  readonly addressKey: Secret
}

export const randomId = ({ random }: Pick<CourseHost, 'random'>) => newId(random, 12)

/** What every attempt at a lesson is about. */
export const aboutOf = ({ id, enrolment, day }: Pick<Claim, 'id' | 'enrolment' | 'day'>) =>
  `course.${id}.${enrolment}.${day}`

/** Of the note which lessons the courses had for a dispatch call, or for a lesson whose sender was killed. */
export const lessonsKey = (callOrLesson: string) => `lessons of ${callOrLesson}`

/** The course that links and requests without a name are about. */
export const firstCourse = ({ catalog }: Pick<CourseHost, 'catalog'>) =>
  catalog.courses[0]?.id ?? FIRST_COURSE

/** The form of an address that the store knows, else its composed form. Every form is looked up, whatever the first gives. */
export async function storedForm({ store }: Pick<CourseHost, 'store'>, identity: string): Promise<string> {
  const forms = formsOf(identity)
  if (forms.length === 1) return identity
  const known = await Promise.all(forms.map((form) => store.find(form)))
  return forms[known.findIndex((found) => found !== undefined)] ?? identity
}

/** What an erasure of an address would have left. With the keys of links too: early stores hashed addresses under those. */
export const erasureHashesOf = ({ keys, addressKey }: CourseHost, identity: string): readonly string[] =>
  suppressionHashes([addressKey, ...keys], identity)
