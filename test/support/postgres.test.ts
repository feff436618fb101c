import { execa } from 'execa'
import { expect, test } from 'vitest'

test('a tool that started a PostgreSQL exits with the code of its failure', async () => {
  const helper = new URL('postgres.ts', import.meta.url).href
  const script = `
    const { startPostgres } = await import('${helper}')
    const server = await startPostgres()
    process.exitCode = 1
    await server.stop()`
  const { exitCode } = await execa(process.execPath, ['--input-type=module', '--eval', script], {
    reject: false,
  })
  expect(exitCode).toBe(1)
})
