import { existsSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs'
import path from 'node:path'
import { isLanguage } from '../core/course/definition.ts'
import { attempt } from '../core/is-record.ts'
import { isTemplateFile } from '../core/mail/compile/files.ts'
import { readWhole } from '../core/regular-file.ts'
import { type Fault, type Place, placeIn, quoted } from './check/place.ts'
import { presetOf } from './contract.ts'
import type { PlatformDefinition } from './definition.ts'

/** Contents of a definition's files, as far as the platform needs them at startup. */
export type DefinitionFiles = ReturnType<typeof readDefinitionFiles>

const LARGEST_LOGO_BYTES = 256 * 1024
const MOST_LESSONS = 365
const CHECK_PATH = 'Check the path: it starts at the folder of the definition.'
const TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
}

/** Reads the files and folders that a sound definition names, relative to `folder`. */
export function readDefinitionFiles(definition: PlatformDefinition, folder: string, language: string) {
  const faults: Fault[] = []
  const root = placeIn(faults)
  const { brand, mails, courses = {} } = definition
  const logo =
    brand?.logo === undefined ? undefined : readLogo(root.at('brand').at('logo'), brand.logo, folder)
  const folderOfMails = mails === undefined ? undefined : originalsIn(path.resolve(folder, mails), language)
  const templates = folderOfMails === undefined ? [] : (namesIn(root.at('mails'), folderOfMails, mails) ?? [])
  const fileOf = (own: string, name: string) =>
    path.join(path.relative(folder, own), name + (existsSync(path.join(own, `${name}.md`)) ? '.md' : '.mjml'))
  // Where each mail comes from. A file replaces the preset's mail of its name; nothing replaces a lesson.
  const sources = new Map<string, () => string>()
  const shipped = new Set(presetOf(definition).mails.definitions.map(({ name }) => name))
  for (const name of shipped) sources.set(name, () => `the preset’s ${name}`)
  for (const name of Object.keys(definition.templates ?? {})) sources.set(name, () => `the template ${name}`)
  for (const name of templates) sources.set(name, () => fileOf(folderOfMails ?? folder, name))
  if (folderOfMails === undefined)
    for (const name of Object.keys(definition.templates ?? {}))
      if (!shipped.has(name))
        root
          .at('templates')
          .at(name)
          .fault(
            'It has no file, because mails is not set.',
            `Name the folder with ${name}.md: mails: './mails'.`,
          )
  const originals = folderOfMails === undefined ? [] : [folderOfMails]
  const lessons = new Map<string, { readonly folder: string; readonly names: readonly string[] }>()
  for (const [id, { lessons: written }] of Object.entries(courses)) {
    const place = root.at('courses').at(id).at('lessons')
    const own = originalsIn(path.resolve(folder, written), language)
    const names = namesIn(place, own, written)
    if (names?.length === 0)
      place.fault(
        `The folder ${quoted(written)} holds no lessons.`,
        'Add one, as 1-first-steps.md, or remove the course.',
      )
    if (names && names.length > MOST_LESSONS)
      place.fault(
        `The course has ${names.length} lessons, and ${MOST_LESSONS} are the most.`,
        'Split it into several courses.',
      )
    // Two files of one name in a folder are the compiler's to report.
    for (const lesson of new Set(names)) {
      const mail = lessonName(id, lesson)
      const [file, other] = [() => fileOf(own, lesson), sources.get(mail)]
      if (other !== undefined)
        place.fault(`${other()} and ${file()} are both the mail ${mail}.`, 'Rename one of the two.')
      sources.set(mail, file)
    }
    originals.push(own)
    lessons.set(id, { folder: own, names: names ?? [] })
  }
  const translations = new Map(
    faults.length > 0 ? [] : originals.map((one) => [one, translationsOf(one, language)] as const),
  )
  for (const found of translations.values())
    for (const [tag, same] of Map.groupBy(found, ({ language: one }) => one.toLowerCase())) {
      const [one, other] = same.map((each) => path.relative(folder, each.folder))
      if (other !== undefined)
        root.fault(`${one} and ${other} are both translations into ${tag}.`, 'Keep one of the two.')
    }
  return {
    logo,
    mails: folderOfMails,
    templates,
    /** Folder and names of the lessons of each course, in order, without their extension. */
    lessons,
    /** The languages in which there are translations, by folder of mails or lessons, with the names translated. */
    translations,
    /** Where the mails, the lessons of each course and the translations are. */
    folders: [...originals, ...[...translations.values()].flat().map((one) => one.folder)],
    faults,
  }
}

/** The template of a lesson: two courses may both have a lesson 1. */
export const lessonName = (course: string, lesson: string) => `${course}-${lesson}`

function readLogo(place: Place, written: string, folder: string): string | undefined {
  const file = path.resolve(folder, written)
  const stats = statsOf(file)
  if (!stats?.isFile()) return place.fault(`There is no file ${quoted(written)}.`, CHECK_PATH)
  if (stats.size > LARGEST_LOGO_BYTES)
    return place.fault(
      `The logo is larger than ${LARGEST_LOGO_BYTES / 1024} KB, and every page carries it.`,
      'Make it smaller.',
    )
  const type = TYPES[path.extname(file).toLowerCase()] ?? 'image/png'
  const bytes = attempt(() => readFileSync(file, 'base64'))
  return bytes === undefined ? unreadable(place, written) : `data:${type};base64,${bytes}`
}

function unreadable(place: Place, written: string | undefined): undefined {
  return place.fault(`${quoted(written)} cannot be read.`, 'Check who may read it.')
}

/** Names of the Markdown and MJML files of a folder in the order in which people count: 2 before 10. */
function namesIn(place: Place, folder: string, written: string | undefined): readonly string[] | undefined {
  if (!statsOf(folder)?.isDirectory())
    return place.fault(`There is no folder ${quoted(written)}.`, CHECK_PATH)
  return templatesIn(folder) ?? unreadable(place, written)
}

function templatesIn(folder: string): readonly string[] | undefined {
  return attempt(() => readdirSync(folder, { withFileTypes: true }))
    ?.filter((entry) => !entry.isDirectory() && isTemplateFile(entry.name) && entry.name !== 'layout.mjml')
    .map(({ name }) => path.parse(name).name)
    .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
}

/** What is at a path; undefined if it leads nowhere, in a circle, or is too long. */
export const statsOf = (file: string): Stats | undefined => attempt(() => statSync(file))

/**
 * Sorts by character, and runs of digits by their number: `2-clay` becomes `000000000002-clay`. Letters in lower case
 * first, so that capitals do not come before them. An Intl.Collator takes milliseconds to make.
 */
function sortKey(name: string): string {
  return `${name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, '0'))}\0${name}`
}

/** Where the mails in the platform's language are: in the folder, or beside their translations in `en`. */
function originalsIn(folder: string, language: string): string {
  const own = path.join(folder, language)
  return statsOf(own)?.isDirectory() && templatesIn(folder)?.length === 0 ? own : folder
}

/** The folders beside or in a folder of mails that are named by another language and hold templates. */
function translationsOf(originals: string, language: string) {
  const folder = path.basename(originals) === language ? path.dirname(originals) : originals
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => path.join(folder, name) !== originals)
    .filter((entry) => entry.isDirectory() && isLanguageTag(entry.name))
    .map(({ name }) => ({
      language: name,
      folder: path.join(folder, name),
      names: templatesIn(path.join(folder, name)) ?? [],
    }))
    .filter(({ names }) => names.length > 0)
}

/** `img` has the form of a tag too, and is no language. */
const isLanguageTag = (name: string): boolean =>
  isLanguage(name) &&
  new Intl.DisplayNames('en', { type: 'language', fallback: 'none' }).of(name) !== undefined

/** A short name for a definition with its mails and lessons, the same on every machine. Only shown, never compared. */
export function fingerprintOf(definition: object, folders: readonly string[]): string {
  const texts = [...new Set(folders)].flatMap(textsIn)
  // Not imported: an import reads all of the module's properties, which loads what they need.
  return process
    .getBuiltinModule('node:crypto')
    .hash('sha256', [describe(definition), ...texts].join('\0'))
    .slice(0, 12)
}

function describe(definition: object): string {
  const seen = new Set<unknown>()
  return JSON.stringify({ ...definition, folder: undefined }, (_, value: unknown) => {
    if (typeof value === 'function' || typeof value === 'bigint' || value instanceof RegExp)
      return String(value)
    if (typeof value !== 'object' || value === null) return value
    // Another library's schema can be large, and can hold itself.
    if ('~standard' in value || seen.has(value)) return undefined
    seen.add(value)
    return value
  })
}

/** Names and contents; a file that cannot be read is left out, as the compiler reports it. */
const textsIn = (folder: string): readonly string[] =>
  attempt(() =>
    readdirSync(folder)
      .filter(isTemplateFile)
      .sort()
      .flatMap((name) => [name, readWhole(path.join(folder, name))]),
  ) ?? []
