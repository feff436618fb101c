import { watch } from 'node:fs'
import type { Finding } from '../../core/finding.ts'
import { TEMPLATES, type TemplateName } from '../../core/mail/catalog.ts'
import { compileFile, LAYOUT, readTemplateFiles, type TemplateFiles } from '../../core/mail/compile/folder.ts'
import { composeMessage } from '../../core/mail/compose.ts'
import { type Rendered, renderMail } from '../../core/mail/render.ts'
import type { CompiledMail } from '../../core/mail/template.ts'
import type { Message } from '../../core/mail/transport.ts'

/** The templates of a folder, compiled when they are looked at and again after they were saved. */
export interface Workshop {
  compiled(name: TemplateName): Promise<CompiledMail>
  rendered(name: TemplateName, slots: Readonly<Record<string, string>>): Promise<Rendered>
  /** The text that mail clients show beside the subject. */
  preheader(name: TemplateName): Promise<string>
  message(name: TemplateName, slots: Readonly<Record<string, string>>): Promise<Message>
  /** What `email lint` says of it, with its samples. */
  findings(name: TemplateName): Promise<readonly Finding[]>
  /** Calls back with the templates that a save concerns. */
  onSave(tell: (names: readonly TemplateName[]) => void): void
  close(): void
}

/** Editors write a file in several steps: what is saved within this time is one save. */
const SETTLE_MS = 15
/** A fixed day, so that the same template always shows the same source. */
const SAMPLE_DATE = new Date('2026-01-05T08:00:00Z')
const SAMPLE_FROM = { name: 'Quantum Course', address: 'course@example.com' }

interface Made {
  readonly files: TemplateFiles
  readonly compiled: CompiledMail
}

export function openWorkshop(folder: string): Workshop {
  const cache = new Map<TemplateName, Promise<Made>>()
  const listeners: ((names: readonly TemplateName[]) => void)[] = []
  const made = (name: TemplateName) => {
    const known = cache.get(name)
    if (known) return known
    const making = readTemplateFiles(folder, name).then(async (files) => ({
      files,
      compiled: await compileFile(files),
    }))
    cache.set(name, making)
    // Whoever asks for it hears of its fault.
    making.catch(() => {})
    return making
  }
  const compiled = async (name: TemplateName) => (await made(name)).compiled
  const changed = new Set<TemplateName>()
  let timer: NodeJS.Timeout | undefined
  const watcher = watch(folder, (_, file) => {
    const concerned =
      file === LAYOUT
        ? TEMPLATES
        : TEMPLATES.filter((name) => file === `${name}.md` || file === `${name}.mjml`)
    if (concerned.length === 0) return
    for (const name of concerned) {
      changed.add(name)
      cache.delete(name)
    }
    clearTimeout(timer)
    timer = setTimeout(() => {
      const names = [...changed]
      changed.clear()
      for (const listener of listeners) listener(names)
    }, SETTLE_MS)
  })
  const withSamples = (mail: CompiledMail, slots: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(mail.slots).map(([name, { sample }]) => [name, slots[name] ?? sample]))
  return {
    compiled,
    async rendered(name, slots) {
      const mail = await compiled(name)
      return renderMail(mail, withSamples(mail, slots))
    },
    async message(name, slots) {
      const mail = await compiled(name)
      const filled = withSamples(mail, slots)
      return composeMessage({
        mail: {
          template: name,
          slots: filled,
          to: { name: undefined, address: 'you@example.com' },
          about: `preview.${name}`,
          date: SAMPLE_DATE,
          ...(filled.unsubscribeUrl === undefined ? {} : { unsubscribeUrl: filled.unsubscribeUrl }),
        },
        compiled: mail,
        from: SAMPLE_FROM,
        replyTo: undefined,
      })
    },
    async preheader(name) {
      return /^preheader:\s*(.*)$/m.exec((await made(name)).files.source)?.[1] ?? ''
    },
    async findings(name) {
      const { brokenTemplate, lintCompiled } = await import('../../core/mail/lint/lint.ts')
      try {
        return lintCompiled({ ...(await made(name)), shownFolder: '' }).findings
      } catch (error) {
        return [brokenTemplate(error, '')]
      }
    },
    onSave: (tell) => void listeners.push(tell),
    close() {
      clearTimeout(timer)
      watcher.close()
    },
  }
}

/** `render`'s and the preview's view of a fault: the sentence of a broken template, which names file and line. */
export function templateFault(error: unknown): string {
  const known = error instanceof Error && (error.name === 'TemplateError' || error.name === 'SlotError')
  return known ? error.message : 'the template could not be compiled'
}
