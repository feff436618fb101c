import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { documentedTree } from '../../scripts/command-tree.ts'
import { commandLines } from '../../scripts/markdown.ts'
import { allNodes } from '../../src/cli/command.ts'

const commands = allNodes(await documentedTree()).filter(({ path }) => path.length > 0)

test.each(commands.map((command) => [command.path.join(' '), command] as const))(
  'the help of %s has an example of itself, and every example names options that exist',
  (name, command) => {
    const examples = command.after.slice(command.after.indexOf('Examples:'))
    const typed = examples.split('\n').flatMap(commandLines)
    expect(command.after).toContain('Examples:')
    expect(typed.some((words) => words.slice(1).join(' ').startsWith(name))).toBe(true)
    for (const words of typed) {
      const path = words.slice(1)
      const found = commands
        .filter((one) => one.path.every((word, index) => path[index] === word))
        .sort((a, b) => b.path.length - a.path.length)[0]
      expect(found, words.join(' ')).toBeDefined()
      for (const word of path.filter((one) => /^--[a-z]/.test(one)))
        expect(
          found?.options.map(({ name }) => name),
          words.join(' '),
        ).toContain(word.split('=')[0])
    }
  },
)

test('no help of a command speaks of one platform: its words are those of every definition', async () => {
  const pages = await readFile('docs/reference/commands.md', 'utf8')
  expect(pages.match(/.*\b(?:exams?|qubits?|quantum|tutor|lesson\.viewed|course-day)\b.*/gi)).toBeNull()
})

test('the example for node_exporter replaces its file at once: a file written to is empty while the check runs', () => {
  const { after } = commands.find(({ path }) => path.join(' ') === 'health') ?? { after: '' }
  const [, written, moved, read] = /--format prom > (\S+); mv (\S+) (\S+)/.exec(after) ?? []
  expect([written, read]).toEqual([moved, expect.stringMatching(/\.prom$/)])
  // It reads every file of this name, so the one in the making has another. In its folder, a move is one step.
  expect(written).toMatch(/^\/var\/lib\/node_exporter\/[\w.]+(?<!\.prom)$/)
})
