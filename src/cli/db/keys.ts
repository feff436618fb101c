import type { Context } from '../context.ts'
import { readText } from '../environment.ts'
import { CommandError, EXIT } from '../exit.ts'

/** Public keys of age, named as they are or by files with one a line. */
export function recipientsOf(context: Context, named: readonly string[]): readonly string[] {
  return named.flatMap((one) => (one.startsWith('age1') ? [one] : keysIn(context, one, 'age1')))
}

/** The secret keys in a file as age-keygen writes it. */
export function identitiesOf(context: Context, file: string | undefined): readonly string[] {
  return file === undefined ? [] : keysIn(context, file, 'AGE-SECRET-KEY-')
}

function keysIn(context: Context, file: string, prefix: string): readonly string[] {
  const keys = readText(context, file)
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line.startsWith(prefix))
  if (keys.length === 0)
    throw new CommandError(
      EXIT.usage,
      `${file} has no line with a key of age (${prefix}…): is it the right file?`,
    )
  return keys
}
