import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { VALUE_KINDS } from '../../src/core/env/kinds.ts'
import { contractOf } from '../../src/platform/contract.ts'
import { environmentTypes, mailTypes } from '../../src/platform/env-types.ts'
import { loadPlatform } from '../../src/platform/load-platform.ts'
import { emptyFolder } from '../support/folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

const DEFINITION = `import { definePlatform } from '${root}src/platform/checked.ts'
import { validatePlatformEnv } from '${root}src/platform/read-env.ts'
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

/** What the compiler says of files: each error's file and line, with its text. */
async function compile(files: Readonly<Record<string, string>>) {
  const folder = await emptyFolder()
  const config = {
    extends: `${root}tsconfig.json`,
    compilerOptions: { rewriteRelativeImportExtensions: false, typeRoots: [`${root}node_modules/@types`] },
    include: Object.keys(files),
  }
  for (const [name, text] of Object.entries({ ...files, 'tsconfig.json': JSON.stringify(config) }))
    await writeFile(path.join(folder, name), text)
  const tsc = [`${root}node_modules/typescript/bin/tsc`, '-p', folder, '--pretty', 'false']
  const output = await new Promise<string>((resolve) =>
    execFile(process.execPath, tsc, { cwd: folder }, (_, stdout) => resolve(stdout)),
  )
  const errors = output.split('\n').filter((line) => /error TS/.test(line))
  return { output, errors, lines: errors.map((line) => /\((\d+),/.exec(line)?.[1]) }
}

test('each fault of a definition is one compile error, at its place and with its fix, and no other type is lost', async () => {
  const { output, errors, lines } = await compile({ 'platform.config.mts': DEFINITION })
  expect(lines).toEqual(['10', '10', '11', '11', '13', '19'])
  const meant = ['"secret"', '"duration"', "'summary'", '"shop"', '"shop"', '"secret"']
  for (const [index, name] of meant.entries())
    expect(errors[index]).toMatch(new RegExp(`Did you mean (?:to write )?'?${name}'?\\?`))
  expect(output).not.toContain("type 'never'")
}, 60_000)

test('what env types writes compiles, whatever the kinds, and finds each misuse in its place', async () => {
  const of = { unlocks: 'a', absent: 'b' }
  const kinds = Object.fromEntries(
    VALUE_KINDS.map((kind, at) => [`ALL_${at}`, { kind, ...(kind === 'enum' && { of: ['eu', 'us'] }) }]),
  )
  const contract = contractOf({
    preset: 'base',
    services: { web: {} },
    groups: {
      'all-kinds': { ...of, variables: kinds },
      kiln: {
        ...of,
        variables: { KILN_KEY: { kind: 'secret' }, KILN_REGION: { kind: 'enum', of: ['eu', 'us'] } },
        rules: [{ allOrNone: ['KILN_KEY', 'KILN_REGION'] }],
      },
      hall: { ...of, always: true, variables: { HALL_SEATS: { kind: 'integer', default: 5 } } },
    },
  })
  const { errors, lines } = await compile({
    'platform-env.d.ts': environmentTypes(contract),
    'program.mts': `import type { PlatformEnv } from './platform-env.d.ts'
declare const env: PlatformEnv
export const region: 'eu' | 'us' | undefined = env.kiln?.KILN_REGION
export const key: string | undefined = env.kiln?.KILN_KEY.reveal()
export const seats: number = env.hall.HALL_SEATS + (process.env.KILN_KEY?.length ?? 0)
export const from: string | undefined = env.mail?.MAILER_FROM?.address
export const shown: string | undefined = env.kiln?.KILN_KEY
export const place: 'asia' | undefined = env.kiln?.KILN_REGION
export const none = [env.kiln.KILN_KEY, env.klin, env.hall.HALL_SEAT]
`,
  })
  expect(lines).toEqual(['7', '8', '9', '9', '9'])
  expect(errors[3]).toContain("Property 'klin' does not exist")
  expect(errors[4]).toContain("Did you mean 'HALL_SEATS'?")
}, 60_000)

test('what email types writes of the front matter compiles, and finds a missing slot and a mistyped mail in their place', async () => {
  const folder = await emptyFolder()
  await mkdir(path.join(folder, 'mails'))
  await writeFile(
    path.join(folder, 'mails/invoice.md'),
    '---\nsubject: Your invoice\nslots:\n  amount: { type: text, sample: 5 euros }\n  dueAt: { type: text, sample: noon }\nbecause: You ordered.\n---\n\n{{amount}} by {{dueAt}}\n',
  )
  await writeFile(path.join(folder, 'platform.config.json'), '{ "preset": "base", "mails": "./mails" }')
  const { mails } = await loadPlatform({ folder, file: 'platform.config.json' })
  const { errors, lines } = await compile({
    'platform-mails.d.ts': mailTypes(mails.definitions, await mails.compiled()),
    'program.mts': `import type { MailName, MailSlots } from '${root}src/core/mail/send-email.ts'
declare function send<Name extends MailName<object>>(name: Name, slots: MailSlots<object, Name>): void
send('invoice', { amount: '5', dueAt: 'noon' })
send('invoice', { amount: '5' })
send('invoise', { amount: '5' })
`,
  })
  expect(lines).toEqual(['4', '5'])
  expect(errors[0]).toContain("'dueAt'")
  expect(errors[1]).toContain('"invoise"')
}, 60_000)
