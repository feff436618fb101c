import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { expect, test } from 'vitest'

test('what is published is what the code makes: references, schemas, rules of alerts, deploy files, compiled mails', async () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const words = ['scripts/make.ts', '--check']
  const { exitCode, all } = await execa(process.execPath, words, { cwd: root, all: true, reject: false })
  expect({ exitCode, all }).toEqual({ exitCode: 0, all: '' })
}, 60_000)
