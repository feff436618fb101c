import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { TEMPLATES, type TemplateName } from '../catalog.ts'
import type { CompiledMail, CompiledMails } from '../template.ts'
import { compileTemplate } from './compile.ts'

/** Compiles every template of a folder (`layout.mjml` and a file for each row of the catalog). */
export async function compileFolder(folder: string): Promise<CompiledMails> {
  const compiled = await Promise.all(
    TEMPLATES.map(async (name) => [name, await compileFile(folder, name)] as const),
  )
  // The entries are exactly the rows of the catalog.
  return Object.fromEntries(compiled) as unknown as CompiledMails
}

export async function compileFile(folder: string, name: TemplateName): Promise<CompiledMail> {
  const file = `${name}.md`
  const [source, layout] = await Promise.all([
    readFile(path.join(folder, file), 'utf8'),
    readFile(path.join(folder, 'layout.mjml'), 'utf8'),
  ])
  return compileTemplate({ file, source, layout })
}
