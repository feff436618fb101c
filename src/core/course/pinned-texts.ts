import type { Log } from '../host.ts'
import type { LessonTexts } from '../mail/definition.ts'
import { type CompiledMail, inLanguage } from '../mail/template.ts'
import type { CourseStore } from './store.ts'

export type LessonMail =
  /** The current text, from the platform's templates. */
  | { readonly kind: 'running'; readonly language: string | undefined }
  /** The text as it was when the enrolment began. */
  | { readonly kind: 'stored'; readonly mail: CompiledMail }
  /** There is no text: the lesson waits. */
  | { readonly kind: 'missing'; readonly reason: string }

/** Begins the reason of a lesson that waits for its course or its text. */
export const NOT_HERE = 'the platform has no '
/** Begins that of one that waits for its text. */
export const NO_LESSON = `${NOT_HERE}lesson`
/** How many compiled texts are kept for reuse; a mail takes about 20 kB. */
const MOST_COMPILED = 100

/**
 * Gives the text that an enrolment gets of a lesson: the current one if it has not changed, else the one kept in the
 * store, compiled when first needed. One that no longer compiles is replaced by the current, with a warning.
 */
export function createPinnedTexts(log: Pick<Log, 'warn'> | undefined) {
  const compiled = new Map<string, Promise<CompiledMail | undefined>>()

  async function compile(hash: string, { lesson, like, store }: LessonRequest, texts: LessonTexts) {
    const text = await store.lessonText(hash)
    if (text === undefined) {
      log?.warn('lesson_text_missing', `the store does not have the text that enrolments keep of ${lesson}`)
      return undefined
    }
    return texts.compile(text, like).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : 'unknown'
      const broken = `the text that enrolments keep of ${lesson} no longer compiles`
      log?.warn('lesson_text_broken', broken, { reason })
      return undefined
    })
  }

  function fromStore(hash: string, request: LessonRequest, texts: LessonTexts) {
    const compiling = compiled.get(hash) ?? compile(hash, request, texts)
    // Move it to the end: the least recently used text is dropped first.
    compiled.delete(hash)
    compiled.set(hash, compiling)
    // If the store could not be read, ask again next time.
    compiling.catch(() => compiled.delete(hash))
    const [oldest] = compiled.keys()
    if (compiled.size > MOST_COMPILED && oldest !== undefined) compiled.delete(oldest)
    return compiling
  }

  return async (request: LessonRequest): Promise<LessonMail> => {
    const { lesson, language, hashes, texts } = request
    if (texts === undefined) return { kind: 'running', language }
    const running = texts.of(lesson)
    const instead: LessonMail = running
      ? { kind: 'running', language }
      : { kind: 'missing', reason: `${NO_LESSON} ${lesson}: put its file back` }
    const kept = hashes && inLanguage((key) => Object.hasOwn(hashes, key), language)
    const hash = kept === undefined ? undefined : hashes?.[kept]
    if (kept === undefined || hash === undefined) return instead
    if (running?.[kept]?.hash === hash) return { kind: 'running', language: kept === '' ? undefined : kept }
    const mail = await fromStore(hash, request, texts)
    return mail === undefined ? instead : { kind: 'stored', mail }
  }
}

interface LessonRequest {
  readonly lesson: string
  /** A lesson that the course has now, whose layout is used. */
  readonly like: string
  readonly language: string | undefined
  /** The hashes of the texts that the enrolment keeps, by language; undefined: it keeps none. */
  readonly hashes: Readonly<Record<string, string>> | undefined
  readonly texts: LessonTexts | undefined
  readonly store: Pick<CourseStore, 'lessonText'>
}
