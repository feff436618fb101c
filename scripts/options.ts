import { type ParseArgsConfig, parseArgs } from 'node:util'

/**
 * The options of a tool of this project, whose usage begins with the line that one types. `--help` prints that and ends
 * the process with 0; an unknown option, or one without its value, says so on standard error and ends it with 2.
 */
export function optionsOf<const T extends ParseArgsConfig>(
  usage: string,
  config: T,
): ReturnType<typeof parseArgs<T>> {
  if (process.argv.includes('--help')) {
    console.log(usage)
    process.exit(0)
  }
  try {
    return parseArgs(config)
  } catch (error) {
    return refuse(usage, error instanceof Error ? error.message : String(error))
  }
}

/** A whole number of at least so much, named as it is in the sentence, or the end of the process with 2. */
export function wholeNumber(usage: string, name: string, text: string, least = 0): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isSafeInteger(value) && value >= least) return value
  return refuse(usage, `${name} is a whole number of at least ${least}, and not ${text || 'nothing'}`)
}

/** Ends the process with 2, having said what is wrong and what would be right. */
export function refuse(usage: string, sentence: string): never {
  console.error(`${sentence}\n\n${usage}`)
  process.exit(2)
}
