import { execaSync } from 'execa'

/** Is a program here that a test needs? When not, it says aloud what to install, and the test is skipped. */
export function hasProgram(words: readonly [string, ...string[]], debianPackage: string): boolean {
  const [program, ...args] = words
  const { exitCode } = execaSync(program, args, {
    reject: false,
    // Where Debian has servers, and a user's PATH often does not.
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
  })
  if (exitCode === 0) return true
  process.stderr.write(`skipped: ${words.join(' ')} does not run here (apt-get install ${debianPackage})\n`)
  return false
}
