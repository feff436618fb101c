import path from 'node:path'
import { withBrand } from '../brand.ts'
import type { CompiledMail, CompiledMails } from '../template.ts'
import { compileTemplate } from './compile.ts'
import { LAYOUT, readTemplateFiles, TemplateError, type TemplateFiles, type Templates } from './files.ts'

/** Compiles every mail of a set. Rejects with a TemplateError that names the whole path of the file. */
export async function compileFolders(set: Templates): Promise<CompiledMails> {
  const compiled = await Promise.all(
    set.definitions.map(async (definition) => {
      const files = await readTemplateFiles(set, definition).catch(inFolder)
      return [definition.name, await compileFile(files).catch((error) => inFolder(error, files))] as const
    }),
  )
  return Object.fromEntries(compiled)
}

function inFolder(error: unknown, files?: TemplateFiles): never {
  if (!(error instanceof TemplateError)) throw error
  const { file, line, sentence } = error
  const folder = error.folder ?? (file === LAYOUT ? files?.layoutFolder : files?.folder) ?? ''
  throw new TemplateError(path.join(folder, file), line, sentence)
}

export async function compileFile({
  definition: { slots },
  file,
  source,
  layout,
  language,
  brand,
}: TemplateFiles): Promise<CompiledMail> {
  const compiled = await compileTemplate({ file, source, layout, language, ...(slots && { slots }) })
  return brand === undefined ? compiled : withBrand(compiled, brand)
}
