import { compileFolders } from '../src/core/mail/compile/compile.ts'
import { TemplateError } from '../src/core/mail/compile/files.ts'
import type { MailFolder, MailSet } from '../src/core/mail/definition.ts'
import { baseMailSet } from '../src/presets/base/mails.ts'
import { learningMailSet } from '../src/presets/learning/mails.ts'

/**
 * Compiles the templates of each preset. The results are committed, so that an installed package sends without MJML. A
 * broken template ends the program with one line that names its file and line.
 */
export const COMPILED_MAILS: Readonly<Record<string, () => Promise<string>>> = {
  'templates/compiled/mails.json': () => compiledFile(learningMailSet),
  'templates/compiled/base.json': () => compiledFile(baseMailSet),
  ...Object.fromEntries(
    (baseMailSet.translations ?? [])
      .filter(({ folder }) => !baseMailSet.folders.includes(folder))
      .map(({ language, folder }) => [
        `templates/compiled/base.${language}.json`,
        () => compiledFile(baseMailSet, [folder]),
      ]),
  ),
}

async function compiledFile(
  { definitions, folders }: MailSet,
  before: readonly MailFolder[] = [],
): Promise<string> {
  try {
    const compiled = await compileFolders({ definitions, folders: [...before, ...folders] })
    return `${JSON.stringify(compiled, null, 1)}\n`
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
}
