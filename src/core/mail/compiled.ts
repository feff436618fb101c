import type { CompiledMails } from './template.ts'

let loaded: Promise<CompiledMails> | undefined

/** The mails as compiled by `npm run make`, without MJML or Markdown: loaded once, and tried again after a fault. */
export function compiledMails(): Promise<CompiledMails> {
  // The JSON's inferred type is its literal shape; the compiler that wrote it returns CompiledMails.
  loaded ??= import('../../../templates/compiled/mails.json', { with: { type: 'json' } }).then(
    (module) => module.default as unknown as CompiledMails,
    (error: unknown) => {
      loaded = undefined
      throw error
    },
  )
  return loaded
}
