import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { type Fault, type Place, placeIn } from './check/fault.ts'
import type { PlatformDefinition } from './definition.ts'

/** What a definition's files hold, as far as the platform needs them at once. */
export interface DefinitionFiles {
  /** As a data URL. */
  readonly logo: string | undefined
  /** Absolute. */
  readonly mails: string | undefined
  /** Names of the templates in that folder. */
  readonly templates: readonly string[]
  /** Absolute, by course. */
  readonly lessonFolders: ReadonlyMap<string, string>
  /** Names of the lessons of each course, in order, without their extension. */
  readonly lessons: ReadonlyMap<string, readonly string[]>
  readonly faults: readonly Fault[]
}

const LARGEST_LOGO_BYTES = 256 * 1024
const MOST_LESSONS = 365
const TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
}

/** Reads the files and folders that a sound definition names, relative to `folder`. */
export function readDefinitionFiles(definition: PlatformDefinition, folder: string): DefinitionFiles {
  const faults: Fault[] = []
  const root = placeIn(faults)
  const { brand, mails, courses = {} } = definition
  const logo =
    brand?.logo === undefined
      ? undefined
      : readLogo(root.at('brand').at('logo'), path.resolve(folder, brand.logo))
  const folderOfMails = mails === undefined ? undefined : path.resolve(folder, mails)
  const templates =
    folderOfMails === undefined ? [] : (namesIn(root.at('mails'), folderOfMails, 'mails') ?? [])
  const lessonFolders = new Map(
    Object.entries(courses).map(([id, course]) => [id, path.resolve(folder, course.lessons)]),
  )
  const lessons = Object.entries(courses).map(([id, course]) => {
    const place = root.at('courses').at(id).at('lessons')
    const names = namesIn(place, path.resolve(folder, course.lessons), 'lessons')
    if (names?.length === 0)
      place.fault('The folder holds no lessons.', 'Add one, as 1-first-steps.md, or remove the course.')
    if (names && names.length > MOST_LESSONS)
      place.fault(
        `The course has ${names.length} lessons, and ${MOST_LESSONS} are the most.`,
        'Split it into several courses.',
      )
    return [id, names ?? []] as const
  })
  return { logo, mails: folderOfMails, templates, lessonFolders, lessons: new Map(lessons), faults }
}

function readLogo(place: Place, file: string): string | undefined {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (!stats?.isFile())
    return place.fault('There is no such file.', 'Check the path: it starts at the folder of the definition.')
  if (stats.size > LARGEST_LOGO_BYTES)
    return place.fault(
      `The logo is larger than ${LARGEST_LOGO_BYTES / 1024} KB, and every page carries it.`,
      'Make it smaller.',
    )
  const type = TYPES[path.extname(file).toLowerCase()] ?? 'image/png'
  return `data:${type};base64,${readFileSync(file).toString('base64')}`
}

/** Names of the Markdown and MJML files of a folder in the order in which people count: 2 before 10. */
function namesIn(place: Place, folder: string, what: string): readonly string[] | undefined {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    return place.fault(
      `There is no such folder of ${what}.`,
      'Check the path: it starts at the folder of the definition.',
    )
  return readdirSync(folder)
    .filter((name) => /\.(?:md|mjml)$/.test(name) && name !== 'layout.mjml')
    .map((name) => path.parse(name).name)
    .sort(byNumber)
}

/** Text as it sorts by character, and runs of digits by their number. An Intl.Collator takes milliseconds to make. */
function byNumber(a: string, b: string): number {
  const [key, other] = [sortKey(a), sortKey(b)]
  return key < other ? -1 : key > other ? 1 : 0
}

/** `2-clay` becomes `000000000002-clay`; letters in lower case first, so that capitals do not come before them. */
function sortKey(name: string): string {
  return `${name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, '0'))}\0${name}`
}
