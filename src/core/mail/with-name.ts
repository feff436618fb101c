import { escapeHtml } from './render.ts'
import type { CompiledMails, Part } from './template.ts'

/** Writes the platform's name wherever a layout asks for it. */
export function withName(compiled: CompiledMails, name: string): CompiledMails {
  const named = (parts: readonly Part[]): readonly Part[] =>
    parts.map((part) => (typeof part !== 'string' && part.slot === 'platformName' ? escapeHtml(name) : part))
  return Object.fromEntries(
    Object.entries(compiled).map(([template, mail]) => [template, { ...mail, html: named(mail.html) }]),
  )
}
