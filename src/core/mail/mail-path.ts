import path from 'node:path'
import { packageRoot } from '../package-files.ts'
import type { MailFolder } from './definition.ts'

/** True for `welcome.md` and `layout.mjml`. Hidden files, as an editor's lock `.#welcome.md`, are no templates. */
export function isTemplateFile(name: string): boolean {
  return !name.startsWith('.') && /\.(?:md|mjml)$/.test(name)
}

/** Where a folder of templates is on this machine. */
export function pathOf({ path: folder, shipped = false }: MailFolder): string {
  return shipped ? path.join(packageRoot(), folder) : folder
}
