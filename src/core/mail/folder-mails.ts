import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { parsedJson } from '../is-record.ts'
import { fileNames, readBytes, readPackageFile } from '../package-files.ts'
import { isTemplateFile, pathOf, type Templates } from './compile/files.ts'
import type { CompiledMails } from './template.ts'

/** Output file of `platformctl email build`, in the folder of the mails. */
export const BUILD_FILE = path.join('compiled', 'mails.json')

export interface MailBuild {
  readonly version: 1
  /** The version of the package that made it: another one may compile the same sources to other mails. */
  readonly madeBy: string
  /** Hash of everything that the mails were made from. */
  readonly sources: string
  readonly mails: CompiledMails
}

/** The compiled mails of a folder: its build if that is fresh, and otherwise compiled now. */
export async function compiledFolder(templates: Templates, folder: string): Promise<CompiledMails> {
  const build = await readBuild(folder)
  // MJML takes a second to load: a start with a fresh build does without.
  return build?.madeBy === (await packageVersion()) && build.sources === (await hashSources(templates))
    ? build.mails
    : (await buildFolder(templates)).mails
}

/** Compiles a set. Rejects with a TemplateError that names the file and the line. */
export async function buildFolder(templates: Templates): Promise<MailBuild> {
  const { compileFolders } = await import('./compile/compile.ts')
  const sources = await hashSources(templates)
  return { version: 1, madeBy: await packageVersion(), sources, mails: await compileFolders(templates) }
}

async function packageVersion(): Promise<string> {
  const { version } = JSON.parse(await readPackageFile('package.json')) as { readonly version: string }
  return version
}

async function readBuild(folder: string): Promise<MailBuild | undefined> {
  const text = await readFile(path.join(folder, BUILD_FILE), 'utf8').catch(() => '')
  // Written by `email build`.
  return parsedJson(text) as MailBuild | undefined
}

/** A hash of everything that the mails are made from: templates, layouts, definitions and brand. */
async function hashSources({ definitions, folders, brand }: Templates): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify({ definitions, brand }))
  const all = [
    ...folders,
    ...definitions.flatMap(({ folder, layouts = [] }) => [folder ?? [], layouts].flat()),
  ]
  hash.update(JSON.stringify(all.map(({ language }) => language)))
  for (const folder of new Set(all.map(pathOf))) {
    const files = (await fileNames(folder)).filter(isTemplateFile).sort()
    // A file that cannot be read is the compiler's to report.
    for (const file of files)
      hash.update(`\0${file}\0`).update(await readBytes(path.join(folder, file)).catch(() => ''))
  }
  return hash.digest('base64url')
}
