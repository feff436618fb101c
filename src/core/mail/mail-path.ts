import path from 'node:path'
import { packageRoot } from '../package-root.ts'
import type { MailFolder } from './definition.ts'

/** Where a folder of templates is on this machine. */
export function pathOf({ path: folder, shipped = false }: MailFolder): string {
  return shipped ? path.join(packageRoot(), folder) : folder
}
