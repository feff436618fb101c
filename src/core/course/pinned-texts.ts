import type { Log } from '../log.ts'
import type { LessonTexts } from '../mail/lesson-text.ts'
import { type CompiledMail, inLanguage } from '../mail/template.ts'
import type { CourseStore } from './store.ts'

/** The text of a lesson to send. */
export type LessonMail =
  /** That of the platform's templates. */
  | { readonly kind: 'running'; readonly language: string | undefined }
  /** As the lesson was when the enrolment began. */
  | { readonly kind: 'stored'; readonly mail: CompiledMail }
  /** There is none: the lesson waits. */
  | { readonly kind: 'missing'; readonly reason: string }

/** Compiled texts that are kept for the next who gets them; a mail is some 20 kB. */
const MOST_COMPILED = 100

/**
 * Gives the text that an enrolment keeps of a lesson: the running one if it is still the same, and otherwise the one
 * in the store, compiled when it is first needed. A text that cannot be compiled any more does not cost the reader the
 * lesson: the running one is sent in its place, with a warning in the log.
 */
export function createPinnedTexts(log: Pick<Log, 'warn'> | undefined) {
  const compiled = new Map<string, Promise<CompiledMail | undefined>>()

  function fromStore(
    hash: string,
    {
      lesson,
      like,
      texts,
      store,
    }: Required<Pick<LessonRequest, 'lesson' | 'like' | 'store'>> & { texts: LessonTexts },
  ): Promise<CompiledMail | undefined> {
    const known = compiled.get(hash)
    if (known !== undefined) {
      // The one that is longest unused is dropped first.
      compiled.delete(hash)
      compiled.set(hash, known)
      return known
    }
    const compiling = (async () => {
      const text = await store.lessonText(hash)
      if (text === undefined) {
        log?.warn('lesson_text_missing', `the store does not have the text that enrolments keep of ${lesson}`)
        return undefined
      }
      return texts.compile(text, like).catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : 'unknown'
        log?.warn('lesson_text_broken', `the text that enrolments keep of ${lesson} no longer compiles`, {
          reason,
        })
        return undefined
      })
    })()
    compiled.set(hash, compiling)
    // A store that could not be read is asked again.
    compiling.catch(() => compiled.delete(hash))
    const [oldest] = compiled.keys()
    if (compiled.size > MOST_COMPILED && oldest !== undefined) compiled.delete(oldest)
    return compiling
  }

  return async ({ lesson, like, language, hashes, texts, store }: LessonRequest): Promise<LessonMail> => {
    if (texts === undefined) return { kind: 'running', language }
    const running = texts.of(lesson)
    const instead: LessonMail =
      running === undefined
        ? { kind: 'missing', reason: `the platform has no lesson ${lesson}: put its file back` }
        : { kind: 'running', language }
    const kept = hashes && inLanguage((key) => Object.hasOwn(hashes, key), language)
    const hash = kept === undefined ? undefined : hashes?.[kept]
    if (kept === undefined || hash === undefined) return instead
    if (running?.[kept]?.hash === hash) return { kind: 'running', language: kept === '' ? undefined : kept }
    const mail = await fromStore(hash, { lesson, like, texts, store })
    return mail === undefined ? instead : { kind: 'stored', mail }
  }
}

interface LessonRequest {
  readonly lesson: string
  /** A lesson that the course has now: the layout is that of it. */
  readonly like: string
  /** Of the reader. */
  readonly language: string | undefined
  /** Of the texts that the enrolment keeps, by language; undefined: it keeps none. */
  readonly hashes: Readonly<Record<string, string>> | undefined
  readonly texts: LessonTexts | undefined
  readonly store: Pick<CourseStore, 'lessonText'>
}
