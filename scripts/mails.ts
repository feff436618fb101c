import { fileURLToPath } from 'node:url'
import { compileFolder } from '../src/core/mail/compile/folder.ts'
import { TemplateError } from '../src/core/mail/compile/source.ts'

export const COMPILED_MAILS = 'templates/compiled/mails.json'

/**
 * What `templates/` compiles to: committed, so that a package that is only installed sends without MJML. A template
 * that is broken ends the program with one line that names its file and line.
 */
export async function compiledMailsFile(): Promise<string> {
  const folder = fileURLToPath(new URL('../templates', import.meta.url))
  try {
    return `${JSON.stringify(await compileFolder(folder), null, 1)}\n`
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    process.stderr.write(`templates/${error.message}\n`)
    process.exit(1)
  }
}
