import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { hasProgram } from '../support/programs.ts'

async function completion(shell: string): Promise<string> {
  const { context, stdout } = testContext()
  expect(await runProgram(['completion', shell], context)).toBe(0)
  return stdout()
}

const fish = hasProgram(['fish', '--version'], 'fish')
const zsh = hasProgram(['zsh', '--version'], 'zsh')
const man = hasProgram(['groff', '--version'], 'groff')

test.skipIf(!fish).each([
  ['platformctl dem', ['demo']],
  ['platformctl db ba', ['backup']],
  ['platformctl db backup --fo', ['--format']],
  ['platformctl preflight --format s', ['sarif']],
  ['platformctl health --format p', ['prom']],
])('fish completes %j', async (typed, words) => {
  const file = path.join(await emptyFolder(), 'platformctl.fish')
  await writeFile(file, await completion('fish'))
  const { stdout } = await execa('fish', ['--no-config', '-c', `source ${file}; complete -C '${typed}'`])
  expect(stdout.split('\n').map((line) => line.split('\t')[0])).toEqual(words)
})

test.skipIf(!zsh).each([
  ['platformctl dem', 'demo'],
  ['platformctl db ba', 'backup'],
  ['platformctl preflight --format s', 'sarif'],
  ['platformctl health --format p', 'prom'],
])('zsh completes %j', async (typed, word) => {
  const file = path.join(await emptyFolder(), '_platformctl')
  await writeFile(file, await completion('zsh'))
  // A terminal of zsh's own, because completion works only while a line is edited.
  const script = `
    zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell 'PS1="> "; autoload -Uz compinit; compinit -D -u; source ${file}; print re""ady'
    zpty -r -m shell line '*ready*'
    zpty -w -n shell '${typed}'; sleep 0.3
    # A tab with more input behind it is a pasted one, and is not completed.
    zpty -w -n shell $'\\t'; sleep 1
    zpty -w -n shell $'\\x15print do""ne\\n'
    zpty -r -m shell line '*done*'
    print -r -- "$line"
    zpty -d shell`
  const { stdout } = await execa('zsh', ['-f', '-c', script], {
    timeout: 15_000,
    env: { TERM: 'dumb', HOME: path.dirname(file) },
  })
  expect(stdout).toContain(`${typed.replace(/\S*$/, '')}${word}`)
})

test.skipIf(!man)('the manual page has nothing that troff warns of', async () => {
  const { stderr, stdout } = await execa('groff', ['-man', '-Tutf8', '-P-cbou', '-ww', 'man/platformctl.1'])
  expect(stderr).toBe('')
  expect(stdout).toContain('platformctl db backup [options] <file>')
})
