import path from 'node:path'
import { codeOf } from '../../errors.ts'
import { attempt } from '../../is-record.ts'
import { packageRoot, readBytes } from '../../package-files.ts'
import { READ_FAULTS } from '../../regular-file.ts'
import type { MailDefinition, MailFolder, MailSet } from '../definition.ts'
import type { MailBrand } from '../template.ts'

/** The file that surrounds every mail of a folder. */
export const LAYOUT = 'layout.mjml'

/** A template that cannot be compiled: one sentence, with file and line. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
  readonly file: string
  readonly line: number
  readonly sentence: string
  readonly folder: string | undefined
  readonly fix: string | undefined

  /** `folder`: of the file, if it is known where the fault is found. `fix`: if it is not only to correct the line. */
  constructor(file: string, line: number, sentence: string, folder?: string, fix?: string) {
    super(`${file}:${line}: ${sentence}`)
    this.file = file
    this.line = line
    this.sentence = sentence
    this.folder = folder
    this.fix = fix
  }

  /** The folder of the file at fault, if it is one of these. */
  folderIn(files?: Pick<TemplateFiles, 'folder' | 'layoutFolder'>): string | undefined {
    return this.folder ?? (this.file === LAYOUT ? files?.layoutFolder : files?.folder)
  }
}

/** True for `welcome.md` and `layout.mjml`. Hidden files, as an editor's lock `.#welcome.md`, are no templates. */
export const isTemplateFile = (name: string): boolean => !name.startsWith('.') && /\.(?:md|mjml)$/.test(name)

export const pathOf = ({ path: folder, shipped = false }: MailFolder): string =>
  shipped ? path.join(packageRoot(), folder) : folder

export interface TemplateFiles {
  readonly definition: MailDefinition
  /** `welcome.md`, or `welcome.mjml` for a body in MJML. */
  readonly file: string
  readonly source: string
  readonly layout: string
  /** Absolute: where the template is, and where its layout is. */
  readonly folder: string
  readonly layoutFolder: string
  /** Whether the template is the package's own. */
  readonly shipped?: boolean
  /** Language tag of the template; undefined is English. */
  readonly language?: string | undefined
  readonly brand?: MailBrand | undefined
}

export type Templates = Pick<MailSet, 'definitions' | 'folders' | 'brand'>

/** The template comes from the first folder that has it, the layout from the first that has one, the package's last. */
export async function readTemplateFiles(
  { folders, brand }: Pick<Templates, 'folders' | 'brand'>,
  definition: MailDefinition,
): Promise<TemplateFiles> {
  const own = [definition.folder ?? [], definition.layouts ?? []].flat().filter(({ shipped }) => !shipped)
  const layout = await firstOf([...own, ...folders], [LAYOUT])
  if (layout === undefined) throw new TemplateError(LAYOUT, 1, 'it is missing from the folder of templates')
  const { folder, file: name = definition.name } = definition
  const places = folder ? [folder] : folders
  const found = await firstOf(places, [`${name}.md`, `${name}.mjml`])
  const none = `${name} has no template; the body is Markdown here or MJML in ${name}.mjml`
  if (found === undefined) throw new TemplateError(`${name}.md`, 1, none, places[0] && pathOf(places[0]))
  return {
    definition,
    file: found.file,
    source: found.text,
    folder: pathOf(found.folder),
    ...(found.folder.shipped && { shipped: true }),
    layout: layout.text,
    layoutFolder: pathOf(layout.folder),
    language: found.folder.language,
    brand,
  }
}

/** The first folder that has one of these files; both at once are a fault. */
async function firstOf(folders: readonly MailFolder[], files: readonly string[]) {
  for (const folder of folders) {
    const place = pathOf(folder)
    const read = files.map(async (file) => {
      const text = await readBytes(path.join(place, file)).then(
        (bytes) => textOf(bytes, place, file),
        (error: unknown) => absent(error, place, file),
      )
      return text === undefined ? [] : [{ folder, file, text }]
    })
    const [one, other] = (await Promise.all(read)).flat()
    if (one && other)
      throw new TemplateError(other.file, 1, `there is a ${one.file} too; keep one of the two`, place)
    if (one) return one
  }
  return undefined
}

/** A template's text without the byte order mark that Notepad and PowerShell write before it. */
function textOf(bytes: Uint8Array, folder: string, file: string): string {
  const text = attempt(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  if (text !== undefined) return text
  throw new TemplateError(file, 1, 'it is not UTF-8, the encoding of every template', folder)
}

/** Undefined for a file that does not exist. */
function absent(error: unknown, folder: string, file: string): undefined {
  const code = codeOf(error)
  if (code === 'ENOENT') return undefined
  const fault = READ_FAULTS[code] ?? `cannot be read (${code})`
  throw code === '' ? error : new TemplateError(file, 1, `it ${fault}`, folder)
}
