import type { TemplateName } from './catalog.ts'
import type { CompiledMail } from './template.ts'

let loaded: Promise<Readonly<Record<TemplateName, CompiledMail>>> | undefined

/** The mails as compiled by `npm run make`, without MJML or Markdown: loaded once, and tried again after a fault. */
export function compiledMails(): Promise<Readonly<Record<TemplateName, CompiledMail>>> {
  // The JSON's inferred type is its literal shape; the compiler that wrote it returns compiled mails.
  loaded ??= import('../../../templates/compiled/mails.json', { with: { type: 'json' } }).then(
    (module) => module.default as unknown as Readonly<Record<TemplateName, CompiledMail>>,
    (error: unknown) => {
      loaded = undefined
      throw error
    },
  )
  return loaded
}
