import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type InputOptions, type OutputOptions, rolldown } from 'rolldown'
import packageJson from '../package.json' with { type: 'json' }
import { thirdPartyNotices } from './notices.ts'
import { optionsOf, refuse } from './options.ts'

const USAGE = `npm run executable
  build/platformctl: one file that runs where there is no Node. It holds dist, the packages that dist imports, templates,
  runbooks and SQLite in a copy of the Node that runs this. For Linux with glibc, on the processor of this machine.`
optionsOf(USAGE, { options: {} })
if (process.platform !== 'linux') refuse(USAGE, 'The executable can only be made on Linux.')

const root = fileURLToPath(new URL('..', import.meta.url))
const work = `${root}build/work`
const SQLITE = 'better-sqlite3'
rmSync(work, { recursive: true, force: true })
mkdirSync(work, { recursive: true })

/** Everything that was bundled. */
const modules = new Set<string>()

/** Bundles one module, whose text is given, with everything that it imports. */
async function bundle(source: string, output: OutputOptions, input: InputOptions = {}): Promise<void> {
  const build = await rolldown({
    cwd: root,
    input: 'entry',
    platform: 'node',
    logLevel: 'silent',
    plugins: [
      {
        name: 'the text of the entry',
        resolveId: (id) => (id === 'entry' ? `${root}entry.js` : null),
        load: (id) => (id === `${root}entry.js` ? source : null),
      },
    ],
    ...input,
  })
  const { output: written } = await build.write({
    minify: true,
    keepNames: true,
    codeSplitting: false,
    ...output,
  })
  for (const part of written) if (part.type === 'chunk') for (const id of part.moduleIds) modules.add(id)
  await build.close()
}

/** The packages that dist imports from beside it: `pg`, `nodemailer/lib/dkim`. */
const installed = new RegExp(
  `\\b(?:from|import\\()["\`]((?:${Object.keys(packageJson.dependencies).join('|')})(?:/[^"\`]*)?)["\`]`,
  'g',
)
const imported = new Set(
  globSync('dist/{cli,chunks}/*.js', { cwd: root }).flatMap((file) =>
    [...readFileSync(root + file, 'utf8').matchAll(installed)].map(([, name = '']) => name),
  ),
)
for (const name of imported) {
  if (name === SQLITE) continue
  // Named one by one, because `export *` finds no names in a CommonJS package.
  const names = Object.keys((await import(name)) as object).filter((one) => /^[\w$]+$/.test(one))
  await bundle(`export { ${names.join(', ')} } from '${name}'\n`, {
    file: `${work}/node_modules/${name}.js`,
    format: 'esm',
  })
}
// The addon is given to it: an executable has no folder in which it could look.
await bundle(
  `const create = require('${SQLITE}/lib/database.js')
module.exports = create(() => addon, false)
module.exports.SqliteError = require('${SQLITE}/lib/sqlite-error.js')`,
  { file: `${work}/${SQLITE}.cjs`, format: 'cjs' },
  { resolve: { alias: { [`${SQLITE}/lib`]: `${root}node_modules/${SQLITE}/lib` } } },
)
await bundle(`import '${root}scripts/executable/boot.ts'`, { file: `${work}/boot.cjs`, format: 'cjs' })

const ASSETS = [
  'package.json',
  'bin/platformctl.js',
  'dist/**/*.{js,css}',
  'templates/**/*.{md,mjml}',
  'runbooks/*.md',
]
const assets = {
  ...Object.fromEntries(
    ASSETS.flatMap((pattern) => globSync(pattern, { cwd: root })).map((one) => [one, root + one]),
  ),
  ...Object.fromEntries(
    globSync('{node_modules/**/*.js,*.cjs}', { cwd: work }).map((one) => [one, `${work}/${one}`]),
  ),
  [`${SQLITE}.node`]: `${root}node_modules/${SQLITE}/prebuilds/linux-${process.arch}.node`,
}
// Behind the two hyphens Node leaves --env-file alone, which it would read itself, NODE_OPTIONS included.
writeFileSync(
  `${work}/sea.json`,
  JSON.stringify({
    main: 'boot.cjs',
    output: 'blob',
    disableExperimentalSEAWarning: true,
    execArgv: ['--'],
    assets,
  }),
)
execFileSync(process.execPath, ['--experimental-sea-config', 'sea.json'], { cwd: work, stdio: 'ignore' })

const made = `${root}build/platformctl`
copyFileSync(process.execPath, made)
chmodSync(made, 0o755)
execFileSync('strip', [made])
execFileSync(
  `${root}node_modules/.bin/postject`,
  [
    made,
    'NODE_SEA_BLOB',
    `${work}/blob`,
    '--sentinel-fuse',
    'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
  ],
  { stdio: 'ignore' },
)
writeFileSync(
  `${root}build/THIRD-PARTY-NOTICES.txt`,
  [
    readFileSync(`${root}dist/THIRD-PARTY-NOTICES.txt`, 'utf8'),
    thirdPartyNotices(modules),
    `Node.js ${process.versions.node} and what it contains: https://github.com/nodejs/node/blob/v${process.versions.node}/LICENSE\n`,
  ].join('\n'),
)
console.log(made)
