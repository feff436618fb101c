import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { platformctl } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { answers, authority, serve } from '../support/outside.ts'

test('the built command checks real names and certificates, trusts NODE_EXTRA_CA_CERTS, and ends', async () => {
  const signed = await authority('Of the operator')
  const certificate = await signed.issue({ host: 'localhost', from: -80, to: 5.5 })
  const { port } = await serve(answers({ '/ping': [200] }), certificate)
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, 'ca.pem'), signed.ca)
  await writeFile(
    path.join(cwd, '.env'),
    `SHAREDSTORE_REST_URL=https://localhost:${port}\nSHAREDSTORE_REST_TOKEN=token-of-the-store\n`,
  )
  const run = (env: Record<string, string>) =>
    platformctl(['preflight', '--deep', '--service', 'api', '--env-file', '.env'], { cwd, env })

  const trusted = await run({ NODE_EXTRA_CA_CERTS: path.join(cwd, 'ca.pem') })
  expect(trusted).toMatchObject({ exitCode: 0, stderr: '' })
  expect(trusted.stdout).toMatch(
    /✔ reachability .*\n.*▲ certificate +ends in 5 days.*\n.*✔ authorisation +is accepted/,
  )

  const stranger = await run({})
  expect(stranger).toMatchObject({ exitCode: 1, stderr: '' })
  expect(stranger.stdout).toMatch(
    /✖ certificate .*trusts[\s\S]*○ authorisation +skipped: not tried, as certificate failed/,
  )
})
