import type { Context } from '../context.ts'
import { readTextFile } from '../environment.ts'
import { CommandError, EXIT } from '../exit.ts'

/** Public keys of age, named as they are or by files with one a line. */
export async function recipientsOf(context: Context, named: readonly string[]): Promise<readonly string[]> {
  const keys = named.map((one) => (one.startsWith('age1') ? [one] : keysIn(context, one, 'age1')))
  return (await Promise.all(keys)).flat()
}

/** The secret keys in a file as age-keygen writes it. */
export async function identitiesOf(context: Context, file: string | undefined): Promise<readonly string[]> {
  return file === undefined ? [] : keysIn(context, file, 'AGE-SECRET-KEY-')
}

async function keysIn(context: Context, file: string, prefix: string): Promise<readonly string[]> {
  const keys = (await readTextFile(context, file))
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
