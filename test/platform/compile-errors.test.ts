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

/** What the compiler says of files, all in one run: the errors of each, as the number of the line and the text. */
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
  const found = [...output.matchAll(/^(\S+)\((\d+),\d+\): (error TS.*)$/gm)]
  const of = (file: string) =>
    found.flatMap(([, name, line, text = '']) => (name === file ? [{ line: Number(line), text }] : []))
  return { output, of, linesOf: (file: string) => of(file).map(({ line }) => line) }
}

/** Types of an environment with every kind of variable, and a program that uses some of them right and some wrong. */
function environment() {
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
  return {
    'platform-env.d.ts': environmentTypes(contract),
    'environment.mts': `import type { PlatformEnv } from './platform-env.d.ts'
declare const env: PlatformEnv
export const region: 'eu' | 'us' | undefined = env.kiln?.KILN_REGION
export const key: string | undefined = env.kiln?.KILN_KEY.reveal()
export const seats: number = env.hall.HALL_SEATS + (process.env.KILN_KEY?.length ?? 0)
export const from: string | undefined = env.mail?.MAILER_FROM?.address
export const shown: string | undefined = env.kiln?.KILN_KEY
export const place: 'asia' | undefined = env.kiln?.KILN_REGION
export const none = [env.kiln.KILN_KEY, env.klin, env.hall.HALL_SEAT]
`,
  }
}

/** Types of a mail that says its slots in its front matter, and a program that sends it right and wrong. */
async function mails() {
  const folder = await emptyFolder()
  await mkdir(path.join(folder, 'mails'))
  await writeFile(
    path.join(folder, 'mails/invoice.md'),
    '---\nsubject: Your invoice\nslots:\n  amount: { type: text, sample: 5 euros }\n  dueAt: { type: text, sample: noon }\nbecause: You ordered.\n---\n\n{{amount}} by {{dueAt}}\n',
  )
  await writeFile(path.join(folder, 'platform.config.json'), '{ "preset": "base", "mails": "./mails" }')
  const { mails } = await loadPlatform({ folder, file: 'platform.config.json' })
  return {
    'platform-mails.d.ts': mailTypes(mails.definitions, await mails.compiled()),
    'mails.mts': `import type { MailName, MailSlots } from '${root}src/core/mail/send-email.ts'
declare function send<Name extends MailName<object>>(name: Name, slots: MailSlots<object, Name>): void
send('invoice', { amount: '5', dueAt: 'noon' })
send('invoice', { amount: '5' })
send('invoise', { amount: '5' })
`,
  }
}

test('each fault of a definition and each misuse of what env types and email types write is one compile error, at its place and with its fix', async () => {
  const { output, of, linesOf } = await compile({
    'platform.config.mts': DEFINITION,
    ...environment(),
    ...(await mails()),
  })
  expect(linesOf('platform.config.mts')).toEqual([10, 10, 11, 11, 13, 19])
  const meant = ['"secret"', '"duration"', "'summary'", '"shop"', '"shop"', '"secret"']
  for (const [index, name] of meant.entries())
    expect(of('platform.config.mts')[index]?.text).toMatch(
      new RegExp(`Did you mean (?:to write )?'?${name}'?\\?`),
    )
  expect(output).not.toContain("type 'never'")
  expect(linesOf('environment.mts')).toEqual([7, 8, 9, 9, 9])
  const [, , , unknown, mistyped] = of('environment.mts')
  expect(unknown?.text).toContain("Property 'klin' does not exist")
  expect(mistyped?.text).toContain("Did you mean 'HALL_SEATS'?")
  expect(linesOf('mails.mts')).toEqual([4, 5])
  expect(of('mails.mts').map(({ text }) => text)).toEqual([
    expect.stringContaining("'dueAt'"),
    expect.stringContaining('"invoise"'),
  ])
  for (const types of ['platform-env.d.ts', 'platform-mails.d.ts']) expect(linesOf(types)).toEqual([])
}, 60_000)
