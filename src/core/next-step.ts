/** What a daemon was started with, as options name it. */
export interface Places {
  readonly definition: string | null
  readonly envFiles: readonly string[]
  readonly dataFolder: string
}

/** Commands that work on no store, and so take no `--data`. */
const WITHOUT_DATA = /^platformctl (?:preflight|health|billing|alert test)\b/

/** A command with the options that make it act on one daemon, to be pasted into any shell in any folder. */
export function nextStep(command: string, { definition, envFiles, dataFolder }: Places): string {
  return [
    command,
    ...(definition === null ? [] : ['--config', shellWord(definition)]),
    ...envFiles.flatMap((file) => ['--env-file', shellWord(file)]),
    ...(WITHOUT_DATA.test(command) ? [] : ['--data', shellWord(dataFolder)]),
  ].join(' ')
}

/** Quoted for a POSIX shell where it needs to be. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
