import { fileURLToPath } from 'node:url'
import { compileFolder } from '../src/core/mail/compile/folder.ts'

export const COMPILED_MAILS = 'templates/compiled/mails.json'

/** What `templates/` compiles to: committed, so that a package that is only installed sends without MJML. */
export async function compiledMailsFile(): Promise<string> {
  const folder = fileURLToPath(new URL('../templates', import.meta.url))
  return `${JSON.stringify(await compileFolder(folder), null, 1)}\n`
}
