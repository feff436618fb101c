import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { parsedJson } from '../is-record.ts'
import { fileNames, readBytes, readPackageFile } from '../package-files.ts'
import {
  isTemplateFile,
  pathOf,
  readTemplateFiles,
  type TemplateFiles,
  type Templates,
} from './compile/files.ts'
import { hashOf, type LessonText, type LessonTexts } from './definition.ts'
import type { CompiledMails } from './template.ts'

/** Output file of `platformctl email build`, in the folder of the mails. */
export const BUILD_FILE = path.join('compiled', 'mails.json')

export type MailBuild = Readonly<Awaited<ReturnType<typeof buildFolder>>>

/** The compiled mails of a folder: its build if that is fresh, and otherwise compiled now. */
export async function compiledFolder(templates: Templates, folder: string): Promise<CompiledMails> {
  const text = await readFile(path.join(folder, BUILD_FILE), 'utf8').catch(() => '')
  // Written by `email build`.
  const build = parsedJson(text) as MailBuild | undefined
  // MJML takes a second to load: a start with a fresh build does without.
  return build?.madeBy === (await packageVersion()) && build.sources === (await hashSources(templates))
    ? build.mails
    : (await buildFolder(templates)).mails
}

/** Rejects with a TemplateError that names the file and the line. */
export async function buildFolder(templates: Templates) {
  const { compileFolders } = await import('./compile/compile.ts')
  const sources = await hashSources(templates)
  /** Another version of the package may compile the same sources to other mails. */
  const madeBy = await packageVersion()
  return { version: 1 as const, madeBy, sources, mails: await compileFolders(templates) }
}

async function packageVersion(): Promise<string> {
  const { version } = JSON.parse(await readPackageFile('package.json')) as { readonly version: string }
  return version
}

/** A hash of everything that the mails are made from: templates, layouts, definitions and brand; not of where it lies. */
async function hashSources({ definitions, folders, brand }: Templates): Promise<string> {
  const described = definitions.map(({ folder: _, layouts: __, ...rest }) => rest)
  const hash = createHash('sha256').update(JSON.stringify({ definitions: described, brand }))
  const all = [
    ...folders,
    ...definitions.flatMap(({ folder, layouts = [] }) => [folder ?? [], layouts].flat()),
  ]
  const places = [...new Set(all.map(pathOf))]
  hash.update(JSON.stringify(all.map((one) => [places.indexOf(pathOf(one)), one.language])))
  for (const folder of places) {
    // A folder or file that cannot be read is the compiler's to report.
    const files = (await fileNames(folder).catch(() => [])).filter(isTemplateFile).sort()
    for (const file of files)
      hash.update(`\0${file}\0`).update(await readBytes(path.join(folder, file)).catch(() => ''))
  }
  return hash.digest('base64url')
}

/** Reads the lessons of a set. Rejects with a TemplateError if a file is missing or cannot be read. */
export async function readLessonTexts(set: Templates): Promise<LessonTexts> {
  const lessons = new Map<string, Record<string, { text: LessonText; files: TemplateFiles }>>()
  // The lessons of a course share a layout: keep it once.
  const layouts = new Map<string, string>()
  const reading = set.definitions.map(async (definition) => {
    if (!definition.lesson) return
    const read = await readTemplateFiles(set, definition)
    const layout = layouts.get(read.layout) ?? read.layout
    layouts.set(layout, layout)
    const { name, translates } = definition
    const key = translates === undefined ? '' : name.slice(0, -(translates.length + 1))
    const lesson = lessons.get(translates ?? name) ?? {}
    lessons.set(translates ?? name, lesson)
    lesson[key] = { text: textOf(read), files: { ...read, layout } }
  })
  await Promise.all(reading)
  return {
    of(lesson) {
      const found = lessons.get(lesson)
      return found && Object.fromEntries(Object.entries(found).map(([key, { text }]) => [key, text]))
    },
    async compile({ format, language, source }, like) {
      const lesson = lessons.get(like)
      const files = lesson?.[language.toLowerCase()]?.files ?? lesson?.['']?.files
      if (files === undefined) throw new RangeError(`there is no lesson ${like}`)
      const { compileFile } = await import('./compile/compile.ts')
      return compileFile({ ...files, file: `lesson.${format}`, source, language })
    },
  }
}

function textOf({ file, source: read, language = 'en' }: TemplateFiles): LessonText {
  const format = file.endsWith('.mjml') ? 'mjml' : 'md'
  // PostgreSQL keeps no NUL, and Markdown reads it as this.
  const source = read.replaceAll('\0', '\ufffd')
  return { hash: hashOf({ format, language, source }), format, language, source }
}
