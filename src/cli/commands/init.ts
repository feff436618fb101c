import fs, { existsSync } from 'node:fs'
import path from 'node:path'
import { baseGroups } from '../../core/env/groups.ts'
import { attempt } from '../../core/is-record.ts'
import { checkDefinition } from '../../platform/check/check.ts'
import { PRESETS } from '../../platform/contract.ts'
import { DEFINITION_FILES } from '../../platform/find.ts'
import { type DefinitionSketch, sketchDefinition } from '../../platform/init/sketch.ts'
import { definitionText, firstLesson, lessonsFolder } from '../../platform/init/write.ts'
import { command, type Define } from '../command.ts'
import { programName, writeRefusal, wrongUsage } from '../context.ts'
import { readTextFile } from '../environment.ts'
import { compact } from '../output/text.ts'

/** Writes files that are not there yet, with their folders: all of them, or none and a CommandError that names what cannot be made. */
export function writeNewFiles(folder: string, files: readonly Readonly<Record<'file' | 'text', string>>[]) {
  const made: (() => void)[] = []
  try {
    for (const { file, text } of files) {
      const full = path.join(folder, file)
      makeFolders(folder, path.dirname(full), made)
      const descriptor = fs.openSync(full, 'wx')
      made.push(() => fs.unlinkSync(full))
      try {
        fs.writeFileSync(descriptor, text)
      } finally {
        fs.closeSync(descriptor)
      }
    }
  } catch (error) {
    // A folder that somebody has put a file into cannot be removed, and stays.
    for (const remove of made.reverse()) attempt(remove)
    const { path: full } = (error ?? {}) as NodeJS.ErrnoException
    const name = full === undefined ? 'the files' : path.relative(folder, full)
    throw wrongUsage(`cannot write ${name}: ${writeRefusal(error)}, then try again. Nothing was written.`)
  }
}

function makeFolders(root: string, folder: string, made: (() => void)[]): void {
  if (folder === root || fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  makeFolders(root, path.dirname(folder), made)
  fs.mkdirSync(folder)
  made.push(() => fs.rmdirSync(folder))
}

const FILE = 'platform.config.ts'

export const define: Define = () =>
  command({
    description:
      'Write a platform.config.ts to start from, made from an .env.schema or .env.example where there is one. Nothing is overwritten.',
    exits:
      '0 written, 2 there is a definition or a folder of that course already, or the file cannot be read.',
    examples: ['', '--from ../web/.env.example', '--course first-steps --language de'],
    inputs: {
      '--from <file>': 'an .env.example or .env.schema (default: the one in the working directory)',
      '--course <id>': 'begin a course of this id, with its first lesson',
      '--language <tag>': 'the language of the platform, as de (default: en)',
    },
    async run(context, { from, course, language }) {
      const { cwd } = context
      const there = DEFINITION_FILES.find((name) => existsSync(path.join(cwd, name)))
      if (there !== undefined)
        throw wrongUsage(`${there} already exists and was not overwritten: edit it, or move it away.`)
      const source = from ?? ['.env.schema', '.env.example'].find((name) => existsSync(path.join(cwd, name)))
      const text = source === undefined ? '' : await readTextFile(context, source)
      const sketch = sketchDefinition(text, baseGroups, source === undefined || isExample(source))
      // `kiln-school` → `Kiln school`.
      const words =
        path
          .basename(cwd)
          .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
          .trim()
          .slice(0, 50) || 'platform'
      const begun = { name: words.charAt(0).toUpperCase() + words.slice(1), course, language }
      const [fault] = checkDefinition(
        {
          preset: 'base',
          ...(course !== undefined && { courses: { [course]: { lessons: lessonsFolder(course) } } }),
          ...(language !== undefined && { brand: { language } }),
        },
        PRESETS,
      )
      if (fault !== undefined) throw wrongUsage(`${fault.cause} ${fault.fix}`)
      if (course !== undefined && existsSync(path.join(cwd, lessonsFolder(course))))
        throw wrongUsage(
          `there is a folder ${lessonsFolder(course)} already, and nothing is overwritten: choose another id, or write the course into a definition by hand.`,
        )
      const lesson = course === undefined ? undefined : firstLesson(course, language)
      // Write the definition last: it turns the folder into a platform, whose lessons must exist by then.
      writeNewFiles(cwd, [...(lesson ? [lesson] : []), { file: FILE, text: definitionText(sketch, begun) }])
      const translate = lesson?.inLanguage === false ? `, in English: translate it into ${language}` : ''
      const wrote = lesson && `Wrote the first lesson, ${path.posix.normalize(lesson.file)}${translate}.`
      return `${report(sketch, source, wrote, programName(context.env)).join('\n')}\n`
    },
  })

/** What such a file holds was written to be published. */
const isExample = (file: string) => /example|sample|template|schema|dist|default/i.test(path.basename(file))

/** `lesson`: one sentence on the first one, if there is one. */
function report(
  { groups, known, skipped, odd }: DefinitionSketch,
  source: string | undefined,
  lesson: string | undefined,
  program: string,
): readonly string[] {
  const said = groups.flatMap(({ name, variables, pairs, guesses }) => [
    `  ${name}`,
    ...variables.map(
      ({ name: variable, variable: { kind }, because }) => `    ${variable}: ${kind} (${because})`,
    ),
    ...pairs.map((pair) => `    ${pair.join(' and ')}: set together (their names say so)`),
    ...guesses.map((pair) => `    ${pair.join(' and ')}: perhaps set together (as a comment)`),
  ])
  return compact(
    source === undefined
      ? `Wrote ${FILE} without a group: there is no .env.schema or .env.example here.`
      : `Wrote ${FILE} from ${source}${isExample(source) ? '' : ', without its values'}.`,
    ...(groups.length === 0 ? [] : ['Guessed; correct what is wrong:', ...said]),
    known.length > 0 && `Left out, as the preset has them: ${known.join(', ')}.`,
    skipped.length > 0 && `Left out, as they belong to Node.js: ${skipped.join(', ')}.`,
    odd > 0 &&
      `Left out: ${odd === 1 ? '1 line whose name has' : `${odd} lines whose names have`} other signs than letters, digits and _.`,
    lesson,
    lesson === undefined
      ? `Next: describe what each group unlocks, then run ${program} env list.`
      : `Next: write lessons while ${program} email preview shows them, then see them sent with ${program} demo.`,
  )
}
