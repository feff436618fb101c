import { existsSync, watch } from 'node:fs'
import path from 'node:path'
import type { Mailbox } from '../../core/address.ts'
import type { Finding } from '../../core/finding.ts'
import { compileFile } from '../../core/mail/compile/compile.ts'
import {
  isTemplateFile,
  LAYOUT,
  pathOf,
  readTemplateFiles,
  type TemplateFiles,
  type Templates,
} from '../../core/mail/compile/files.ts'
import { readTemplate } from '../../core/mail/compile/source.ts'
import type { Message } from '../../core/mail/mailer.ts'
import { composeMessage } from '../../core/mail/open.ts'
import { renderMail, withSamples } from '../../core/mail/template.ts'

export type Headline =
  | { readonly subject: string; readonly preheader: string; readonly file: string }
  /** The file if it could be read. */
  | { readonly fault: string; readonly file?: string }

/** Editors write a file in several steps: changes within this time count as one save. */
const SETTLE_MS = 15
/** A fixed day, so that the same template always shows the same source. */
const SAMPLE_DATE = new Date('2026-01-05T08:00:00Z')
const SAMPLE_FROM = { name: 'Sample', address: 'sender@example.com' }

export type Workshop = ReturnType<typeof openWorkshop>

export function openWorkshop(input: Templates & { readonly from?: Mailbox | undefined }) {
  const { definitions, folders, brand, from = SAMPLE_FROM } = input
  const names = definitions.map(({ name }) => name)
  const listeners: ((names: readonly string[]) => void)[] = []
  const newcomers = new Set<string>()
  const newListeners: ((file: string) => void)[] = []
  const filesOf = (name: string): Promise<TemplateFiles> => {
    const definition = definitions.find((one) => one.name === name)
    if (definition === undefined) throw new RangeError('there is no such template')
    return readTemplateFiles({ folders, ...(brand && { brand }) }, definition)
  }
  const make = async (name: string) => {
    const files = await filesOf(name)
    return { files, compiled: await compileFile(files) }
  }
  const cache = new Map<string, ReturnType<typeof make>>()
  const made = (name: string) => {
    const making = cache.get(name) ?? make(name)
    cache.set(name, making)
    // Its caller gets the fault; this only prevents an unhandled rejection.
    making.catch(() => {})
    return making
  }
  const compiled = async (name: string) => (await made(name)).compiled
  const changed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const files = definitions.flatMap(({ name, file = name, folder }) =>
    (folder ? [folder] : folders).map((one) => ({ name, file, in: pathOf(one) })),
  )
  const noticeNew = (file: string) => {
    if (!isTemplateFile(path.basename(file)) || newcomers.has(file) || !existsSync(file)) return
    newcomers.add(file)
    for (const listener of newListeners) listener(file)
  }
  const onChange = (folder: string, saved: string | null) => {
    const concerned =
      saved === LAYOUT
        ? names
        : files.flatMap(({ name, file, in: of }) =>
            of === folder && (saved === `${file}.md` || saved === `${file}.mjml`) ? [name] : [],
          )
    if (concerned.length === 0) return noticeNew(path.join(folder, saved ?? ''))
    for (const name of concerned) {
      changed.add(name)
      cache.delete(name)
    }
    clearTimeout(timer)
    timer = setTimeout(() => {
      const saved = [...changed]
      changed.clear()
      for (const listener of listeners) listener(saved)
    }, SETTLE_MS)
  }
  const places = new Set([...folders.map(pathOf), ...files.map((one) => one.in)])
  // An executable holds the package's own in itself.
  const watched = [...places].filter(existsSync)
  const watchers = watched.map((folder) => watch(folder, (_, file) => onChange(folder, file)))
  return {
    names,
    definitions,
    compiled,
    /** What a mail says of itself, not compiled unless `isRendered`; a fault in one sentence. */
    async headline(name: string, isRendered = false): Promise<Headline> {
      let file: string | undefined
      try {
        const { source, ...read } = await filesOf(name)
        file = read.file
        const { subject, preheader, slots } = readTemplate(file, source)
        if (isRendered) renderMail(await compiled(name), withSamples(await compiled(name)))
        const filled = (text: string) =>
          text.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (all, slot) => slots[slot]?.sample ?? all)
        return { subject: filled(subject), preheader: filled(preheader), file }
      } catch (error) {
        return { fault: templateFault(error), ...(file !== undefined && { file }) }
      }
    },
    /** Filled with its samples. */
    async rendered(name: string) {
      const mail = await compiled(name)
      return renderMail(mail, withSamples(mail))
    },
    async message(name: string, given: Readonly<Record<string, string>>): Promise<Message> {
      const mail = await compiled(name)
      const slots = withSamples(mail, given)
      const to = { name: undefined, address: 'you@example.com' }
      const { unsubscribeUrl } = slots
      const facts = { template: name, slots, to, about: `preview.${name}`, date: SAMPLE_DATE }
      return composeMessage({ ...facts, ...(unsubscribeUrl && { unsubscribeUrl }) }, mail, from, undefined)
    },
    /** The text that mail clients show beside the subject. */
    preheader: async (name: string) =>
      /^preheader:\s*(.*)$/m.exec((await made(name)).files.source)?.[1] ?? '',
    async findings(name: string): Promise<readonly Finding[]> {
      const shown = (_: string, file: string) => file
      const { brokenTemplate, lintCompiled } = await import('../../core/mail/lint/lint.ts')
      try {
        const { PAGES } = await import('../../daemon/routes.ts')
        return lintCompiled({ ...(await made(name)), shown, pages: PAGES }).findings
      } catch (error) {
        return [brokenTemplate(error, shown, '')]
      }
    },
    async clients(name: string) {
      const { supportOf } = await import('../../core/mail/lint/support.ts')
      return supportOf((await this.rendered(name)).html)
    },
    onSave: (tell: (names: readonly string[]) => void) => void listeners.push(tell),
    /** Calls back with the path of a template that was not there when the workshop opened, and so is not in it. */
    onNew: (tell: (file: string) => void) => void newListeners.push(tell),
    close() {
      clearTimeout(timer)
      for (const watcher of watchers) watcher.close()
    },
  }
}

/** `render`'s and the preview's view of a fault: the sentence of a broken template, which names file and line. */
export function templateFault(error: unknown): string {
  const known = error instanceof Error && (error.name === 'TemplateError' || error.name === 'SlotError')
  return known ? error.message : 'the template could not be compiled'
}
