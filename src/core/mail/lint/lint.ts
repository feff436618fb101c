import { readdir } from 'node:fs/promises'
import { type Finding, SEVERITY_RANK } from '../../finding.ts'
import { messagesOf } from '../../messages/messages.ts'
import { fileNames } from '../../package-files.ts'
import { compileFile } from '../compile/compile.ts'
import {
  LAYOUT,
  pathOf,
  readTemplateFiles,
  TemplateError,
  type TemplateFiles,
  type Templates,
} from '../compile/files.ts'
import { type MailDefinition, translationName } from '../definition.ts'
import { type CompiledMail, renderMail, withSamples } from '../template.ts'
import { lintedMail, type Shown } from './mail.ts'
import { lintFinding } from './rules.ts'
import { checkContrast, checkLinks, checkStructure } from './structure.ts'
import { checkSupport } from './support.ts'

export type LintReport = Awaited<ReturnType<typeof lintMails>>

const atLine = (file: string, line = 1) => ({ file, line, column: 1 })

const NOWHERE = { file: '', line: 0, column: 0 }

function bySeverityAndPlace(a: Finding, b: Finding): number {
  const one = a.location ?? NOWHERE
  const other = b.location ?? NOWHERE
  const inFile = one.file.localeCompare(other.file) || one.line - other.line || one.column - other.column
  return SEVERITY_RANK[a.severity] - SEVERITY_RANK[b.severity] || inFile
}

/** Compiles and checks every mail of a set. `pages` are the paths that the platform serves. */
export async function lintMails(set: Templates, shown: Shown, pages: readonly string[], language = 'en') {
  const seen = new Map<string, Finding>()
  const mails: ReturnType<typeof lintCompiled>['summary'][] = []
  for (const definition of set.definitions) {
    const { summary, findings } = await lintTemplate({ ...set, language, pages }, definition, shown)
    mails.push(summary)
    // A fault of the layout is one fault, however many mails are laid out by it.
    for (const finding of findings) seen.set(keyOf(finding), seen.get(keyOf(finding)) ?? finding)
  }
  // A language that only the package's own mails are in is nobody's to complete.
  const translated = set.definitions.filter(({ translates, folder }) => translates && !folder?.shipped)
  const languages = [...new Set(translated.map(({ name }) => name.slice(0, name.indexOf('/'))))]
  const findings = [
    ...seen.values(),
    ...(await unusedFiles(set, shown)),
    ...(await missingTranslations(set, languages, shown)),
    ...[...new Set([language, ...languages])].flatMap(unspokenLanguage),
  ].sort(bySeverityAndPlace)
  return { version: 1 as const, ok: findings[0]?.severity !== 'error', mails, findings }
}

/** Files that are no mail's template, in the folder where templates are looked up first and in those of translations. */
async function unusedFiles({ definitions, folders }: Templates, shown: Shown) {
  const [first] = folders
  if (first === undefined) return []
  const own = definitions.flatMap(({ folder }) =>
    folder === undefined || folder.shipped ? [] : pathOf(folder),
  )
  const found = await Promise.all(
    [...new Set([pathOf(first), ...own])].map(async (folder) => {
      const used = new Set([
        LAYOUT,
        ...definitions
          .filter((one) => pathOf(one.folder ?? first) === folder)
          .flatMap(({ name, file = name }) => [`${file}.md`, `${file}.mjml`]),
      ])
      const files = (await fileNames(folder)).filter((name) => !name.startsWith('.') && !used.has(name))
      const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
      const misnamed = entries.filter((entry) => entry.isDirectory() && /^[a-z]{2,3}_/i.test(entry.name))
      const unused = (name: string, fix?: string) =>
        lintFinding('template-unused', `No mail uses ${name}.`, atLine(shown(folder, name)), fix)
      return [
        ...files.map((name) => unused(name)),
        ...misnamed.map(({ name }) => unused(name, `Name the folder ${name.replaceAll('_', '-')}.`)),
      ]
    }),
  )
  return found.flat()
}

/** Mails that are not in every language of the platform. */
async function missingTranslations(set: Templates, languages: readonly string[], shown: Shown) {
  const { definitions } = set
  const names = new Set(definitions.map(({ name }) => name))
  const findings = definitions
    .filter(({ translates }) => translates === undefined)
    .map(async (definition): Promise<readonly Finding[]> => {
      const { name } = definition
      const missing = languages.filter((language) => !names.has(translationName(language, name)))
      if (missing.length === 0) return []
      // An unreadable file is a finding of its own.
      const files = await readTemplateFiles(set, definition).catch(() => undefined)
      if (files === undefined) return []
      const { file, folder, shipped } = files
      const where = shipped ? 'that mails of the definition names' : 'of the original'
      const cause = `${name} has no translation for ${missing.join(', ')}: readers of it get the original.`
      const fix = `Add ${missing.map((language) => `${language}/${file}`).join(' and ')} to the folder ${where}.`
      return [lintFinding('translation-missing', cause, atLine(shown(folder, file)), fix)]
    })
  return (await Promise.all(findings)).flat()
}

/** A finding for a language of the mails that the engine has no texts in. */
function unspokenLanguage(language: string): readonly Finding[] {
  const [own, its] = [language, messagesOf(language).language].map(languageName)
  if (own === its) return []
  const cause = `platformctl does not speak ${own}: to readers of ${own}, its pages and what it adds to a mail are in ${its}.`
  const fix = `Write because:, unsubscribe: and action: in ${own} in the front matter of each mail; the pages stay ${its}.`
  return [lintFinding('language-unspoken', cause, undefined, fix)]
}

/** `French` for `fr-CA`. */
const languageName = (tag: string): string =>
  new Intl.DisplayNames('en', { type: 'language' }).of(new Intl.Locale(tag).language) ?? tag

/** A mail that the package ships, and not in the language of the platform. */
function inAnotherLanguage(files: TemplateFiles, language: string, shown: Shown): readonly Finding[] {
  const { definition, file, folder } = files
  const [own, its] = [language, files.language ?? 'en'].map(languageName)
  if (definition.translates !== undefined || own === its) return []
  const cause = `${definition.name} is in ${its}, and the platform is in ${own}: every reader gets it in ${its}.`
  const fix = `Write ${file} in ${own}, in the folder that mails of the definition names.`
  return [lintFinding('translation-missing', cause, atLine(shown(folder, file)), fix)]
}

async function lintTemplate(
  set: Templates & { readonly language: string; readonly pages: readonly string[] },
  definition: MailDefinition,
  shown: Shown,
) {
  let files: TemplateFiles | undefined
  try {
    files = await readTemplateFiles(set, definition)
    const compiled = await compileFile(files)
    const { summary, findings } = lintCompiled({ files, compiled, shown, pages: set.pages })
    const foreign = inAnotherLanguage(files, set.language, shown)
    return {
      summary: { ...summary, warnings: summary.warnings + foreign.length },
      findings: [...findings, ...foreign],
    }
  } catch (error) {
    return {
      summary: { name: definition.name, subject: '', htmlBytes: 0, textBytes: 0, errors: 1, warnings: 0 },
      findings: [brokenTemplate(error, shown, files ?? set.folders.map(pathOf)[0] ?? '')],
    }
  }
}

/** The finding for a template that does not compile; any other fault is thrown on. */
export function brokenTemplate(error: unknown, shown: Shown, at: TemplateFiles | string): Finding {
  if (!(error instanceof TemplateError)) throw error
  const { file, line, sentence, fix } = error
  const folder = error.folderIn(typeof at === 'string' ? { folder: at, layoutFolder: at } : at) ?? ''
  const place = atLine(shown(folder, file), line)
  return lintFinding('template-broken', `The template does not compile: ${sentence}.`, place, fix)
}

export function lintCompiled(input: {
  readonly files: TemplateFiles
  readonly compiled: CompiledMail
  readonly shown: Shown
  /** The paths that links to the platform may have. */
  readonly pages: readonly string[]
}) {
  const { files, compiled, shown, pages } = input
  const rendered = renderMail(compiled, withSamples(compiled))
  const mail = lintedMail(files, compiled, rendered, shown)
  for (const check of [checkLinks, checkStructure, checkContrast, checkSupport]) check(mail, pages)
  const findings = [...new Map(mail.findings.map((finding) => [keyOf(finding), finding])).values()]
  return {
    /** For the mail filled with its samples. */
    summary: {
      name: files.definition.name,
      subject: rendered.subject,
      htmlBytes: Buffer.byteLength(rendered.html),
      textBytes: Buffer.byteLength(rendered.text),
      errors: findings.filter(({ severity }) => severity === 'error').length,
      warnings: findings.filter(({ severity }) => severity === 'warning').length,
    },
    findings,
  }
}

const keyOf = ({ id, cause, location }: Finding): string =>
  `${id} ${location?.file}:${location?.line}:${location?.column} ${cause}`
