import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { SLOTS, TEMPLATES, type TemplateName } from '../catalog.ts'
import type { CompiledMail, CompiledMails } from '../template.ts'
import { compileTemplate } from './compile.ts'
import { TemplateError } from './source.ts'

export const LAYOUT = 'layout.mjml'

/** One template's files as they are on disk. */
export interface TemplateFiles {
  readonly name: TemplateName
  /** `welcome.md`, or `welcome.mjml` for a body in MJML. */
  readonly file: string
  readonly source: string
  readonly layout: string
}

/** Compiles every template of a folder (`layout.mjml` and a file for each row of the catalog). */
export async function compileFolder(folder: string): Promise<CompiledMails> {
  const compiled = await Promise.all(
    TEMPLATES.map(async (name) => [name, await compileFile(await readTemplateFiles(folder, name))] as const),
  )
  // The entries are exactly the rows of the catalog.
  return Object.fromEntries(compiled) as unknown as CompiledMails
}

export async function readTemplateFiles(folder: string, name: TemplateName): Promise<TemplateFiles> {
  const read = (file: string) => readFile(path.join(folder, file), 'utf8')
  const [layout, markdown, mjml] = await Promise.all([
    read(LAYOUT).catch(absent),
    read(`${name}.md`).catch(absent),
    read(`${name}.mjml`).catch(absent),
  ])
  if (layout === undefined) throw new TemplateError(LAYOUT, 1, 'it is missing from the folder of templates')
  if (markdown !== undefined && mjml !== undefined)
    throw new TemplateError(`${name}.mjml`, 1, `there is a ${name}.md too; keep one of the two`)
  if (markdown === undefined && mjml === undefined)
    throw new TemplateError(
      `${name}.md`,
      1,
      `${name} has no template; the body is Markdown here or MJML in ${name}.mjml`,
    )
  return mjml === undefined
    ? { name, file: `${name}.md`, source: markdown ?? '', layout }
    : { name, file: `${name}.mjml`, source: mjml, layout }
}

export function compileFile({ name, ...files }: TemplateFiles): Promise<CompiledMail> {
  return compileTemplate({ ...files, slots: SLOTS[name] })
}

/** No such file; one that is there and cannot be read is a fault of the template like any other. */
function absent(error: unknown): undefined {
  const { code, path: full } = (error ?? {}) as { code?: string; path?: string }
  if (code === 'ENOENT') return undefined
  throw full === undefined ? error : new TemplateError(path.basename(full), 1, `it cannot be read (${code})`)
}
