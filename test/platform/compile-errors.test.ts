import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { emptyFolder } from '../support/folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

const DEFINITION = `import { definePlatform } from '${root}src/platform/checked.ts'
import { validatePlatformEnv } from '${root}src/platform/boot.ts'
import { readPlatformEnv } from '${root}src/platform/read-env.ts'

const GROUP = { unlocks: 'a', absent: 'b' }
const shop = definePlatform({
  preset: 'base',
  services: { web: {} },
  groups: {
    shop: { ...GROUP, variables: { SHOP_KEY: { kind: 'secrt' }, SHOP_WAIT: { kind: 'durationn' } } },
    feed: { ...GROUP, variables: { FEED_URL: { kind: 'url', summry: 'x' } }, required: { when: 'shopp' } },
  },
  probes: { shop: { service: 'web', group: 'shopp', http: 'https://a.example' } },
})
const key: string | undefined = readPlatformEnv(shop, {}).shop?.SHOP_KEY?.reveal()
validatePlatformEnv(shop, {})

const hall = definePlatform({
  groups: { hall: { ...GROUP, variables: { HALL_KEY: { kind: 'secrt' } } } },
  probes: { hall: { service: 'web', check: ({ signal }) => ({ state: signal.aborted ? 'ok' : 'failing' }) } },
})
export const keys: readonly (string | undefined)[] = [key, readPlatformEnv(hall, {}).hall?.HALL_KEY?.reveal()]
`

test('each fault of a definition is one compile error, at its place and with its fix, and no other type is lost', async () => {
  const folder = await emptyFolder()
  await writeFile(path.join(folder, 'platform.config.mts'), DEFINITION)
  await writeFile(
    path.join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: `${root}tsconfig.json`,
      compilerOptions: { rewriteRelativeImportExtensions: false, typeRoots: [`${root}node_modules/@types`] },
      include: ['platform.config.mts'],
    }),
  )
  const output = await new Promise<string>((resolve) =>
    execFile(
      process.execPath,
      [`${root}node_modules/typescript/bin/tsc`, '-p', folder, '--pretty', 'false'],
      { cwd: folder },
      (_, stdout) => resolve(stdout),
    ),
  )
  const errors = output.split('\n').filter((line) => /error TS/.test(line))
  expect(errors.map((line) => /\((\d+),/.exec(line)?.[1])).toEqual(['10', '10', '11', '11', '13', '19'])
  for (const [index, meant] of [
    '"secret"',
    '"duration"',
    "'summary'",
    '"shop"',
    '"shop"',
    '"secret"',
  ].entries())
    expect(errors[index]).toMatch(new RegExp(`Did you mean (?:to write )?'?${meant}'?\\?`))
  expect(output).not.toContain("type 'never'")
}, 60_000)
