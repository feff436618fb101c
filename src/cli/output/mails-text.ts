import { beside } from './wrap.ts'

const NAME_WIDTH = 28

/** The mails of a platform: each with its subject and slots beside its name, wrapped to `columns`. */
export function mailsText(
  mails: readonly {
    readonly name: string
    readonly subject: string
    readonly slots: Readonly<Record<string, unknown>>
  }[],
  columns: number,
): string {
  return mails
    .map(({ name, subject, slots }) => {
      const needs = `slots: ${Object.keys(slots).join(', ')}`
      return `${beside(name.padEnd(NAME_WIDTH), subject, columns)}\n${beside(' '.repeat(NAME_WIDTH), needs, columns)}\n`
    })
    .join('')
}
