import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type OutputBundle, type OutputChunk, rolldown } from 'rolldown'
import { minifySync } from 'rolldown/utils'
import packageJson from '../package.json' with { type: 'json' }
import { findCircles } from './circles.ts'
import { pruneDeclarations } from './declarations.ts'
import { compiledOnLoad, statementsOnLines } from './eager.ts'
import { COMPILED_MAILS } from './mails.ts'
import { inUtcWithoutIcu } from './node-cron.ts'
import { thirdPartyNotices } from './notices.ts'

/**
 * Bundles `src` into `dist`: the CLI with one chunk a command, the server, the part for boot, and what runs in a
 * browser. A package under `dependencies` or `peerDependencies` stays an import; one under `devDependencies` is bundled.
 */
const root = fileURLToPath(new URL('..', import.meta.url))
const external = Object.keys({ ...packageJson.dependencies, ...packageJson.peerDependencies }).map(
  (name) => new RegExp(`^${name}($|/)`),
)

/** `import fs, { readFileSync as read } from "node:fs";`, as the bundler writes it: one a line. */
const BUILTIN_IMPORT =
  /^import (?:(?<whole>[\w$]+)(?:, )?)?(?:\{(?<names>[^}]*)\})? from "(?<id>[\w:/]+)";$/gm
/** What few starts call. The first call loads it. */
const LATER = /^(?:node:)?(?:child_process|dns\/promises|fs\/promises|v8|vm|worker_threads)$/

function builtinInstead(statement: string, ...found: unknown[]): string {
  const { whole, names, id } = found.at(-1) as Record<'whole' | 'names' | 'id', string>
  if (!isBuiltin(id)) return statement
  const from = `globalThis.process.getBuiltinModule("${id}")`
  if (LATER.test(id) && !whole)
    return names
      .split(',')
      .map((name) => name.trim().split(' as '))
      .map(
        ([name = '', as = name]) =>
          `function ${as}(...all) { return new.target ? new (${from}.${name})(...all) : ${from}.${name}(...all); }`,
      )
      .join(' ')
  const bound = [whole, names && `{${names.replaceAll(' as ', ': ')}}`].filter(Boolean)
  return bound.map((left) => `const ${left} = ${from};`).join(' ')
}

// The templates are compiled first: one that is broken fails the build with its file and line.
for (const [file, compiled] of Object.entries(COMPILED_MAILS))
  writeFileSync(`${root}${file}`, await compiled())

const withoutFacade = {
  name: 'built-in modules without their facade',
  // An import of a built-in module reads every one of its properties, also those that load further modules when they
  // are first read: with node:util alone that is a diff algorithm and ICU. Each chunk takes just what it names.
  renderChunk: (code: string) => ({ code: code.replace(BUILTIN_IMPORT, builtinInstead), map: null }),
}
const ascii = {
  name: 'ASCII only',
  // A file with a single other character is kept in two bytes a character, and hashed for the compile cache that way.
  // After minifying, which writes the characters themselves. The tables of characters of large chunks would grow by
  // the escapes.
  generateBundle(_: unknown, bundle: OutputBundle) {
    for (const file of Object.values(bundle))
      if (file.type === 'chunk' && file.code.length < LARGE)
        file.code = file.code.replace(/[^\0-\x7f]/g, escaped)
  },
}

/** Characters of code. Only the compilers of mails are larger, which are other people's code. */
const LARGE = 500_000
const small = {
  name: 'short names in what is large',
  generateBundle(_: unknown, bundle: OutputBundle) {
    const mangle = { keepNames: { function: true, class: true } }
    for (const file of Object.values(bundle))
      if (file.type === 'chunk' && file.code.length >= LARGE)
        file.code = minifySync(file.fileName, file.code, { ...minify, module: true, mangle }).code
  },
}

/**
 * Chunks loaded by frequently started commands: preflight with and without a definition, a HEALTHCHECK, and the daemon.
 */
const STARTED_OFTEN =
  /^(?:cli\/main|chunks\/(?:contract|cli|definition|prober|health|daemon(?:-\w+)?)-[\w-]{8})\.js$/
/** A profile names sources, so its build keeps the functions, and with them the maps, as they are. */
const forProfiles = process.argv.includes('--mapped')
const eager = {
  name: 'functions of a cold start in the compile cache',
  // After minifying, which takes the brackets away.
  generateBundle(_: unknown, bundle: OutputBundle) {
    for (const file of Object.values(bundle)) {
      if (file.type === 'chunk' && STARTED_OFTEN.test(file.fileName) && !forProfiles)
        file.code = compiledOnLoad(file.code)
    }
  },
}
const shortLines = {
  name: 'no uncaught error prints a whole chunk',
  generateBundle(_: unknown, bundle: OutputBundle) {
    for (const file of Object.values(bundle))
      if (file.type === 'chunk' && !forProfiles) file.code = statementsOnLines(file.code)
  },
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

// White space only: less to read at a cold start, and the names in a stack trace stay.
const minify = { compress: false, mangle: false, codegen: { removeWhitespace: true } } as const

rmSync(`${root}dist`, { recursive: true, force: true })
const build = await rolldown({
  // The warning is about modules that are imported both ways. The groups below decide what loads together.
  checks: { ineffectiveDynamicImport: false },
  cwd: root,
  input: {
    'cli/main': 'src/cli/main.ts',
    index: 'src/daemon/index.ts',
    config: 'src/config.ts',
    reporting: 'src/reporting.ts',
  },
  platform: 'node',
  external,
  plugins: [
    {
      name: 'commander without child processes',
      // Commander imports node:child_process for sub-commands that are programs of their own, which we have none of;
      // the import costs every cold start 2 ms.
      transform: (code, id) =>
        id.includes('node_modules/commander/')
          ? {
              code: code.replace(
                /^import childProcess from 'node:child_process';$/m,
                'const childProcess = {};',
              ),
              map: null,
            }
          : null,
    },
    withoutFacade,
    ascii,
    small,
    eager,
    shortLines,
    {
      name: 'MJML without what only its command line and its options load',
      // It loads a minifier, a beautifier, a downloader and a reader of other encodings than UTF-8, which bring 150
      // packages and are asked for nothing here.
      resolveId: (id) =>
        /^(?:htmlnano|cssnano-preset-lite|js-beautify|web-resource-inliner|encoding-sniffer)$/.test(id)
          ? '\0nothing'
          : null,
    },
    {
      name: 'prom-client without pushing, clusters and its own metrics',
      // They load https, zlib, cluster, perf_hooks and v8 at every start, for what nothing here does.
      resolveId: (id, importer) =>
        /lib\/(?:pushgateway|cluster|defaultMetrics)$/.test(id) &&
        importer?.includes('node_modules/prom-client/')
          ? '\0nothing'
          : null,
    },
    {
      name: 'pino without transports and files',
      // Our log writes its lines itself. A transport runs in a worker thread, whose code is loaded at every start.
      resolveId: (id, importer) =>
        /(?:\/transport|^sonic-boom|^worker_threads)$/.test(id) &&
        importer?.replaceAll('\\', '/').includes('node_modules/pino/')
          ? '\0nothing'
          : null,
    },
    {
      name: 'node-cron without ICU in UTC',
      // It asks Intl for the parts of a date, which takes 8 MB for good. The schedule runs in UTC, where Date knows them.
      transform: (code, id) =>
        /node_modules\/node-cron\/dist\/_shared\.js$/.test(id.replaceAll('\\', '/'))
          ? { code: inUtcWithoutIcu(code), map: null }
          : null,
    },
    {
      name: 'what is left out',
      load: (id) => (id === '\0nothing' ? 'module.exports = class {}' : null),
    },
    {
      name: 'caniemail with its data',
      // The library reads its data from beside its own file at run time; in a bundle there is no such place.
      transform: (_code, id) =>
        /node_modules\/caniemail\/dist\/json\.js$/.test(id.replaceAll('\\', '/'))
          ? {
              code: "import data from '../data/caniemail.json' with { type: 'json' }; export const caniEmailJson = data;",
              map: null,
            }
          : null,
    },
  ],
})
const { output } = await build.write({
  dir: 'dist',
  format: 'esm',
  // For the profiler of the benchmarks, as they fit no chunk that was rewritten after it was minified.
  sourcemap: forProfiles && 'hidden',
  minify,
  entryFileNames: '[name].js',
  // A chunk that several commands share would have all their names.
  chunkFileNames: ({ name }) => `chunks/${name.split('~')[0]}-[hash].js`,
  // Each file costs a cold start about half a millisecond: what always loads together is one. A group takes all that its
  // files need and no group of a higher priority took, so that none imports a group of a lower one.
  codeSplitting: {
    groups: [
      {
        name: 'contract',
        priority: 9,
        test: /src\/presets\/(?!base\/platform)|src\/core\/(?:env\/(?:contract|environment|exposure|groups|group-warnings|rule|validate|values|warnings|reader)\.ts|health\/(?:engine-probes|verdicts)\.ts|mail\/compiled\.ts|address|is-record|service|finding|secret)/,
      },
      {
        name: 'cli',
        priority: 8,
        test: /src\/core\/(?:clock|random|installed)\.ts$|src\/platform\/find\.ts$|src\/cli\/(?:choose-platform|program|command|inputs|exit|environment|check-environment|report|output\/findings-text|commands\/preflight)\.ts$|node_modules\/commander\//,
      },
      {
        name: 'definition',
        priority: 8,
        test: /src\/presets\/base\/platform\.ts$|src\/platform\/(?!find|targets|env-types|guaranteed|init)|src\/core\/(?:nearest|env\/explanations|analytics\/personal)\.ts$|node_modules\/leven\//,
      },
      // A HEALTHCHECK starts a process every few seconds for ever.
      {
        name: 'prober',
        priority: 7,
        test: /src\/core\/(?:network\/(?:causes|connect|get)|health\/(?:prober|remote-report|verdict))\.ts$/,
      },
      {
        name: 'health',
        priority: 6,
        test: /src\/cli\/(?:commands\/health|health\/(?:run|targets))\.ts$/,
      },
      // What other commands, or an embedding program, load without the daemon.
      {
        name: 'daemon-reporting',
        priority: 5,
        test: /src\/core\/reporting\/facade\.ts$|src\/daemon\/reporting\.ts$/,
      },
      { name: 'daemon-words', priority: 5, test: /src\/core\/messages\// },
      {
        name: 'daemon-small',
        priority: 5,
        test: /src\/core\/(?:audit|csv|log|paths|course\/(?:course|schedule)|incidents\/incident|mail\/feedback\/event|store\/(?:open|errors))\.ts$/,
      },
      {
        name: 'daemon-common',
        priority: 4,
        test: /src\/core\/(?:course\/(?:links|notices|people)|store\/(?:sql|meta|journal)\.|mail\/feedback\/(?:sending|store)|live\/network|mail\/open|incidents\/(?:advice|channels|lanes)|access\/identity|payments\/webhook)|src\/daemon\/(?:courses|node-listener|http\/respond)\.ts$/,
      },
      { name: 'daemon-store', priority: 3, test: /src\/core\/store\/(?:open|sqlite\/(?:open|history))\.ts$/ },
      { name: 'daemon-platform', priority: 2, test: /src\/daemon\/platform\.ts$/ },
      {
        name: 'daemon',
        priority: 1,
        test: /src\/cli\/commands\/daemon\.ts$|src\/daemon\/(?:start|log|reporting|certificates|systemd)\.ts$/,
      },
    ],
  },
})
await build.close()
const chunks = output.flatMap((file) =>
  file.type === 'chunk' ? [[file.fileName, file.imports] as const] : [],
)
const circles = findCircles(new Map(chunks)).files.map((circle) => circle.join(' → '))
if (circles.length > 0)
  throw new Error(
    `chunks import each other, and one would use constants of another before they are set.\n${circles.join('\n')}`,
  )

// The boot of a host waits for this part: one file of its own, and not the chunks that the command line shares.
const forBoot = await rolldown({
  cwd: root,
  input: 'src/env.ts',
  platform: 'node',
  external,
  plugins: [withoutFacade, ascii, shortLines],
})
await forBoot.write({ file: 'dist/env.js', format: 'esm', minify, codeSplitting: false })
await forBoot.close()

// Every byte is loaded by visitors: names are shortened too. What is loaded later is built alone, with its own copy of
// the little that it shares: a common chunk would be a second request, and an entry that shares exports more than is public.
const loadedLater = ['sender', 'errortrack']
const forBrowsers = await rolldown({
  cwd: root,
  input: 'src/browser.ts',
  platform: 'browser',
  plugins: [
    {
      name: 'what is loaded later stays an import',
      resolveId: (id) => {
        const name = loadedLater.find((one) => id === `./${one}.ts`)
        return name ? { id: `./chunks/browser-${name}.js`, external: true } : null
      },
    },
  ],
})
const browserOutput: OutputChunk[] = [
  ...(await forBrowsers.write({ file: 'dist/browser.js', format: 'esm', minify: true })).output,
].filter((part) => part.type === 'chunk')
await forBrowsers.close()
for (const name of loadedLater) {
  const chunk = await rolldown({ cwd: root, input: `src/browser/${name}.ts`, platform: 'browser' })
  const { output } = await chunk.write({
    file: `dist/chunks/browser-${name}.js`,
    format: 'esm',
    minify: true,
  })
  browserOutput.push(...output.filter((part) => part.type === 'chunk'))
  await chunk.close()
}

// The page of /insights carries its script and its style in itself.
const insights = await rolldown({ cwd: root, input: 'src/browser/insights/main.ts', platform: 'browser' })
const { output: insightsOutput } = await insights.write({
  file: 'dist/insights.js',
  format: 'esm',
  minify: true,
})
await insights.close()

for (const name of ['lesson', 'status']) {
  const script = await rolldown({ cwd: root, input: `src/browser/${name}.ts`, platform: 'browser' })
  await script.write({ file: `dist/${name}.js`, format: 'esm', minify: true })
  await script.close()
}

writeFileSync(
  `${root}dist/insights.css`,
  ['node_modules/uplot/dist/uPlot.min.css', 'src/browser/insights/style.css']
    .map((file) => readFileSync(`${root}${file}`, 'utf8'))
    .join('\n'),
)
writeFileSync(
  `${root}dist/THIRD-PARTY-NOTICES.txt`,
  thirdPartyNotices(
    [...output, ...browserOutput, ...insightsOutput].flatMap((part) =>
      part.type === 'chunk' ? Object.keys(part.modules) : [],
    ),
  ),
)

if (process.argv.includes('--types')) {
  for (const project of ['tsconfig.build.json', 'tsconfig.browser.build.json']) {
    execFileSync('npx', ['tsc', '-p', project], {
      cwd: root,
      stdio: 'inherit',
      shell: process.platform === 'win32',
    })
  }
  const entries = Object.values(packageJson.exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [`${root}${entry.types}`],
  )
  pruneDeclarations(`${root}dist/types`, entries)
}
