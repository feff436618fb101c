/** Where a slot stands decides how its value is escaped. */
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

export type CompiledMails = Readonly<Record<string, CompiledMail>>
