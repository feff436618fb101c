import { brandColors } from '../colour.ts'
import { escapeHtml } from './render.ts'
import type { CompiledMail, CompiledMails, Part } from './template.ts'

/** Values that a layout takes from the platform: filled in once, not for each mail. */
export interface MailBrand {
  readonly platformName: string
  readonly accent: string
  readonly onAccent: string
  readonly accentInDark: string
}

const SLOTS: readonly string[] = [
  'platformName',
  'accent',
  'onAccent',
  'accentInDark',
] satisfies readonly (keyof MailBrand)[]

export function isBrandSlot(name: string): name is keyof MailBrand {
  return SLOTS.includes(name)
}

export function mailBrand(name: string, color: string | undefined): MailBrand {
  const { accent, onAccent, accentInDark } = brandColors(color)
  return { platformName: name, accent, onAccent, accentInDark }
}

/** Writes the platform's name and colors wherever a layout asks for them. */
export function withBrand(mail: CompiledMail, brand: MailBrand): CompiledMail {
  const named = (part: Part): Part =>
    typeof part !== 'string' && isBrandSlot(part.slot) ? escapeHtml(brand[part.slot]) : part
  return { ...mail, html: mail.html.map(named) }
}

export function allWithBrand(compiled: CompiledMails, brand: MailBrand): CompiledMails {
  return Object.fromEntries(Object.entries(compiled).map(([name, mail]) => [name, withBrand(mail, brand)]))
}
