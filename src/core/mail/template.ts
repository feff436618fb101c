/** The place of a slot, which decides how its value is escaped. */
export type SlotContext = 'html' | 'url' | 'plain'

/** Static text, or a slot: what a template is after compiling. Filling it is joining strings. */
export type Part = string | { readonly slot: string; readonly as: SlotContext }

export interface Slot {
  readonly type: 'text' | 'url'
  /** Shown in the preview and in tests. */
  readonly sample: string
}

/** One mail, compiled: `body` is the lesson alone, for its page on the web. */
export interface CompiledMail {
  readonly slots: Readonly<Record<string, Slot>>
  readonly subject: readonly Part[]
  readonly html: readonly Part[]
  readonly text: readonly Part[]
  readonly body: readonly Part[]
}

/** By name; translations by language and name, as `de/welcome`. */
export type CompiledMails = Readonly<Record<string, CompiledMail>>

/** A mail in a language, else in its base language (`de` for `de-AT`), else in the platform's language. */
export function mailIn<M = CompiledMail>(
  compiled: Readonly<Record<string, M>>,
  name: string,
  language: string | undefined,
): M | undefined {
  const keyIn = (tag: string) => (tag === '' ? name : `${tag}/${name}`)
  const found = inLanguage((tag) => Object.hasOwn(compiled, keyIn(tag)), language)
  return found === undefined ? undefined : compiled[keyIn(found)]
}

/**
 * The first of the language, its base language and the empty tag (the platform's language) that something is
 * in; undefined if it is in none.
 */
export function inLanguage(has: (tag: string) => boolean, language: string | undefined): string | undefined {
  const tag = language?.toLowerCase() ?? ''
  return [tag, tag.split('-')[0] ?? '', ''].find(has)
}
