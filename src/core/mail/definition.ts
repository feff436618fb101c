import type { Directory } from '../access/directory.ts'
import type { Identity } from '../access/identity.ts'
import type { CompiledMails, Slot } from './template.ts'

/** What a request for a mail resolves to; undefined answers that there is no such record. */
export type MailResolution =
  | {
      readonly to: string
      readonly slots: Readonly<Record<string, string>>
      /** The record: one mail for each. */
      readonly about: string
    }
  /** The caller may ask, but the plan does not cover it. */
  | 'locked'
  | undefined

export interface MailContext {
  readonly asker: Identity
  readonly directory: Directory
  /** UTC milliseconds. */
  readonly now: number
  /** A path on the site as an absolute address. */
  readonly absolute: (url: string) => string
}

/** Who may ask for a mail over HTTP, with which inputs, and what the server's own records make of it. */
export interface MailAsk {
  readonly by: 'person' | 'service'
  readonly inputs: readonly string[]
  readonly resolve: (
    inputs: Readonly<Record<string, string>>,
    context: MailContext,
  ) => MailResolution | Promise<MailResolution>
}

export interface MailDefinition {
  readonly name: string
  /** What is filled in; a template has exactly these slots, or it does not compile. */
  readonly slots: Readonly<Record<string, Slot['type']>>
  /** Left out: sent by code, a course or the engine, and by nobody over HTTP. */
  readonly ask?: MailAsk
}

/** The mails of a platform: what each is for, and their compiled templates, loaded at the first send. */
export interface MailSet {
  readonly definitions: readonly MailDefinition[]
  readonly compiled: () => Promise<CompiledMails>
}
