import path from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { learning } from '../../src/presets/learning/platform.ts'
import { folderWith } from '../support/folder.ts'
import { hasProgram } from '../support/programs.ts'
import { run } from '../support/run.ts'

async function script(shell: string): Promise<string> {
  const { code, stdout } = await run(['completion', shell])
  expect(code).toBe(0)
  expect(stdout).toContain('demo')
  return stdout
}

/** The words that bash would offer for the words typed so far, the last one unfinished. */
async function offered(words: string[]): Promise<string[]> {
  const typed = words.map((word) => `'${word}'`).join(' ')
  const { stdout } = await execa('bash', [
    '--norc',
    '-c',
    `${await script('bash')}
COMP_WORDS=(${typed}); COMP_CWORD=${words.length - 1}; _platformctl; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ])
  return stdout.split('\n').filter((word) => word !== '')
}

test('bash completes commands, their options and the closed sets of their arguments', async () => {
  expect(await offered(['platformctl', 'dem'])).toEqual(['demo'])
  expect(await offered(['platformctl', 'demo', '--a'])).toEqual(['--address'])
  expect(await offered(['platformctl', 'completion', 'z'])).toEqual(['zsh'])
  expect(await offered(['platformctl', 'health', '--url', 'web=x', '--format', 'p'])).toEqual(['prom'])
  expect(await offered(['platformctl', 'db', 'status', '--format', ''])).toEqual(['text', 'json'])
})

test('bash leaves file names to readline, which quotes the spaces in them', async () => {
  expect(await offered(['platformctl', 'preflight', '--env-file', ''])).toEqual([])
  expect(await script('bash')).toContain('complete -o default -F')
})

test('bash completes the variables, groups and courses of the platform, and no address', async () => {
  expect(await offered(['platformctl', 'env', 'explain', 'MAILER_F'])).toContain('MAILER_FROM')
  expect(await offered(['platformctl', 'env', 'explain', 'paym'])).toEqual(['payments'])
  expect(await offered(['platformctl', 'course', 'set', 'ada', '--course', ''])).toEqual(['quantum'])
  expect(await offered(['platformctl', 'course', 'show', 'a'])).toEqual([])
})

test.each(['bash', 'zsh', 'fish'])(
  '%s is offered no word of a definition that it would run',
  async (shell) => {
    const courses = ['a$(touch pwned)', "it's", 'töpfern', '--all'].map((id) => ({
      ...learning.courses[0],
      id,
    }))
    const platform = { ...learning, courses: courses as typeof learning.courses }
    const { stdout } = await run(['completion', shell], { platform })
    expect(stdout).toContain('töpfern')
    expect(stdout).not.toMatch(/pwned|it's/)
  },
)

test('in bash a value that is the name of a command does not change what is completed', async () => {
  expect(await offered(['platformctl', 'dispatch', '--data', 'db', '--dr'])).toEqual(['--drain', '--dry-run'])
})

test('bash completes the value behind an equals sign', async () => {
  expect(await offered(['platformctl', 'health', '--format', '=', 'p'])).toEqual(['prom'])
  expect(await offered(['platformctl', 'health', '--format', '='])).toEqual(['text', 'json', 'junit', 'prom'])
})

test('in zsh a colon in a help text ends no description', async () => {
  const described = (await script('zsh')).match(/'--[\w-]+:(?:[^'\\]|\\.)*'/g) ?? []
  expect(described.filter((one) => one.includes('default'))).not.toEqual([])
  for (const one of described) expect(one.replaceAll('\\:', '').split(':')).toHaveLength(2)
})

test('in fish an option is completed by its words, by file names or not at all', async () => {
  const lines = (await script('fish')).split('\n')
  // Of `course list`, and of no other command that ends in that word.
  const ofList = lines.filter(
    (line) => line.includes('__fish_seen_subcommand_from list') && / -l /.test(line),
  )
  expect(ofList.filter((line) => !/_from \w+; and __fish_seen_subcommand_from list/.test(line))).toEqual([])
  const option = (name: string) =>
    lines.find((line) => line.includes(`_from dispatch' -l ${name} `))?.split(` -l ${name} `)[1]
  expect(option('format')).toMatch(/^-x -a 'text json' -d /)
  expect(option('env-file')).toMatch(/^-r -d /)
  expect(option('drain')).toMatch(/^-f -d /)
})

/** The words that zsh would offer: its own functions for that only print what they are given. */
async function offeredInZsh(...words: string[]): Promise<string[]> {
  const functions = `compdef() {}; _describe() { print -rl -- \${choices%%:*} }; compadd() { shift; print -rl -- $@ }; _files() { print files }`
  const run = 'words=(platformctl $@); CURRENT=$(($# + 1)); _platformctl'
  const { stdout } = await execa('zsh', [
    '-fc',
    `${functions}\n${await script('zsh')}${run}`,
    'zsh',
    ...words,
  ])
  return stdout.split('\n')
}

test.skipIf(!hasProgram(['zsh', '--version'], 'zsh'))(
  'zsh completes commands of the one before them, their options, and words or files behind an option',
  async () => {
    expect(await offeredInZsh('d')).toContain('demo')
    const below = await offeredInZsh('db', 'b')
    expect(below).toEqual(expect.arrayContaining(['backup', 'restore', '--help']))
    expect(below).not.toContain('demo')
    expect(await offeredInZsh('db', 'backup', '--f')).toContain('--format')
    expect(await offeredInZsh('completion', 'z')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']))
    expect(await offeredInZsh('preflight', '--format', 's')).toEqual([
      'text',
      'json',
      'github',
      'sarif',
      'junit',
    ])
    expect(await offeredInZsh('health', '--format', 'p')).toEqual(['text', 'json', 'junit', 'prom'])
    expect(await offeredInZsh('preflight', '--env-file', '')).toEqual(['files'])
  },
)

test.skipIf(!hasProgram(['fish', '--version'], 'fish')).each([
  ['dem', ['demo']],
  ['db ba', ['backup']],
  ['db backup --fo', ['--format']],
  ['health --format p', ['prom']],
])('fish completes platformctl %s', async (typed, words) => {
  const file = path.join(await folderWith({ script: await script('fish') }), 'script')
  const { stdout } = await execa('fish', [
    '--no-config',
    '-c',
    `source ${file}; complete -C 'platformctl ${typed}'`,
  ])
  expect(stdout.split('\n').map((line) => line.split('\t')[0])).toEqual(words)
})
