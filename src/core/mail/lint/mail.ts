import { parseDocument } from 'htmlparser2'
import type { Finding, Location } from '../../finding.ts'
import { LAYOUT, type TemplateFiles } from '../compile/files.ts'
import type { CompiledMail, renderMail } from '../template.ts'
import { type LintRule, lintFinding } from './rules.ts'

/** A file of a folder, as findings name it. */
export type Shown = (folder: string, file: string) => string

/** A text, or a pattern without the g flag. Empty texts are skipped. */
export type Needle = string | RegExp

export type LintedMail = ReturnType<typeof lintedMail>

/** One mail as the checks see it: its files, its sample rendering, and the HTML as a document. */
export function lintedMail(
  files: TemplateFiles,
  compiled: CompiledMail,
  rendered: ReturnType<typeof renderMail>,
  shown: Shown,
) {
  const template = shown(files.folder, files.file)
  /** Like `place`, but undefined if neither file contains a needle: then nobody wrote it by hand. */
  const written = (...needles: readonly Needle[]): Location | undefined => {
    for (const needle of needles.filter(Boolean))
      for (const [file, text] of [
        [template, files.source],
        [shown(files.layoutFolder, LAYOUT), files.layout],
      ] as const) {
        const at = typeof needle === 'string' ? text.indexOf(needle) : text.search(needle)
        if (at === -1) continue
        const before = text.slice(0, at).split('\n')
        return { file, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
      }
    return undefined
  }
  /** The first needle that the template or the layout contains; else the template's first line. */
  const place = (...needles: readonly Needle[]): Location =>
    written(...needles) ?? { file: template, line: 1, column: 1 }
  const findings: Finding[] = []
  return {
    files,
    compiled,
    rendered,
    document: parseDocument(rendered.html),
    written,
    place,
    findings,
    /** Notes a finding, at the template's first line if it names no place. */
    report(id: LintRule, cause: string, location: Location = place(), fix?: string): void {
      findings.push(lintFinding(id, cause, location, fix))
    },
  }
}
