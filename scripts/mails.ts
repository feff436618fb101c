import { compileFolders } from '../src/core/mail/compile/folder.ts'
import { TemplateError } from '../src/core/mail/compile/template-error.ts'
import type { MailDefinition } from '../src/core/mail/definition.ts'
import { baseMails } from '../src/presets/base/mails.ts'
import { learningMails } from '../src/presets/learning/mails.ts'

/**
 * Compiles the templates of each preset. The results are committed, so that an installed package sends without MJML. A
 * broken template ends the program with one line that names its file and line.
 */
export const COMPILED_MAILS: Readonly<Record<string, () => Promise<string>>> = {
  'templates/compiled/mails.json': () => compiledFile('templates', learningMails),
  'templates/compiled/base.json': () => compiledFile('templates/base', baseMails),
  'templates/compiled/base.de.json': () => compiledFile('templates/base', baseMails, 'de'),
}

async function compiledFile(
  folder: string,
  definitions: readonly MailDefinition[],
  language?: string,
): Promise<string> {
  try {
    const translated = language && { path: `${folder}/${language}`, shipped: true, language }
    const folders = [...(translated ? [translated] : []), { path: folder, shipped: true }]
    const compiled = await compileFolders({ definitions, folders })
    return `${JSON.stringify(compiled, null, 1)}\n`
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    process.stderr.write(`${folder}/${error.message}\n`)
    process.exit(1)
  }
}
