import { execa } from 'execa'
import { expect, test } from 'vitest'

test('a tool that can start a PostgreSQL exits with the code of its failure', async () => {
  const helper = new URL('postgres.ts', import.meta.url).href
  const script = `
    await import('${helper}')
    process.exitCode = 1`
  const { exitCode } = await execa(process.execPath, ['--input-type=module', '--eval', script], {
    reject: false,
  })
  expect(exitCode).toBe(1)
})
