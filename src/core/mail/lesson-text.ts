import { createHash } from 'node:crypto'
import type { CompiledMail } from './template.ts'

/** The text of a lesson in one language, as its file has it. */
export interface LessonText {
  /** The hash of the other fields: two texts with the same hash are the same text. */
  readonly hash: string
  readonly format: 'md' | 'mjml'
  /** A language tag. */
  readonly language: string
  readonly source: string
}

/** The texts of one lesson: the original under an empty name, translations under their language in lower case. */
export type LessonTranslations = Readonly<Record<string, LessonText>>

/** The texts of a platform's lessons. */
export interface LessonTexts {
  /** By the name of the lesson's template; undefined: the platform has no such lesson. */
  of(lesson: string): LessonTranslations | undefined
  /** Compiles a text that a lesson had before, with the layout that the lesson `like` has now. */
  compile(text: LessonText, like: string): Promise<CompiledMail>
}

/** The hash that identifies a text. */
export function hashOf({ format, language, source }: Omit<LessonText, 'hash'>): string {
  return createHash('sha256')
    .update(JSON.stringify([format, language, source]))
    .digest('base64url')
    .slice(0, 22)
}
