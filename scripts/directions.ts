import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'oxc-parser'
import { findCircles } from './circles.ts'

/**
 * Holds the import directions of the house: folder → what it may import of ours, the one file (or folder) in which each
 * foreign package may appear, that neither files nor folders import each other in a circle, and that the daemon starts
 * without the wings.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  'src/core': ['src/core'],
  'src/presets/base': ['src/presets/base', 'src/core', 'templates/compiled'],
  'src/presets/learning': ['src/presets', 'src/core', 'templates/compiled'],
  'src/platform': ['src/platform', 'src/core', 'src/presets'],
  'src/config.ts': ['src/platform', 'src/core'],
  'src/daemon': ['src/daemon', 'src/core', 'src/platform', 'src/presets'],
  'src/witness': ['src/witness', 'src/core'],
  'src/cli': [
    'src/cli',
    'src/witness',
    'src/daemon',
    'src/core',
    'src/platform',
    'src/presets',
    'package.json',
  ],
  'src/env.ts': ['src/core', 'src/presets'],
  'src/reporting.ts': ['src/core/reporting'],
  'src/browser': [
    'src/browser',
    'src/core/analytics',
    'src/core/reporting',
    'src/core/messages',
    'src/core/is-record.ts',
  ],
  'src/browser.ts': ['src/browser', 'src/core/analytics', 'src/core/reporting', 'src/presets/learning'],
}

const ONE_HOME: Record<string, string | readonly string[]> = {
  'better-sqlite3': 'src/core/store/sqlite/',
  'age-encryption': 'src/core/store/sqlite/age.ts',
  jose: 'src/core/access/identity.ts',
  pg: 'src/core/store/postgres/connection.ts',
  nodemailer: 'src/core/mail/transports/',
  mjml: 'src/core/mail/compile/',
  caniemail: 'src/core/mail/lint/support.ts',
  htmlparser2: ['src/core/mail/lint/', 'src/core/mail/compile/'],
  'css-select': 'src/core/mail/lint/',
  domhandler: 'src/core/mail/lint/',
  '@adobe/css-tools': 'src/core/mail/lint/',
  undici: 'src/core/',
  'node-cron': 'src/daemon/schedule.ts',
  'temporal-polyfill': 'src/core/course/zones.ts',
  hono: ['src/daemon/http/', 'src/cli/pages/', 'src/cli/demo/', 'src/cli/preview/'],
  '@hono/node-server': ['src/daemon/', 'src/cli/pages/'],
  pino: 'src/daemon/log.ts',
  'pino-pretty': 'src/daemon/pretty-log.ts',
  'prom-client': 'src/daemon/metrics/',
  marked: 'src/core/mail/compile/',
  yaml: 'src/core/mail/compile/',
  commander: 'src/cli/',
  '@sentry/node': 'src/core/reporting/errortrack.ts',
  uplot: 'src/browser/insights/chart.ts',
  '@sentry/browser': 'src/browser/errortrack.ts',
}

/** What the daemon and an embedding program load when they start. */
const STARTS = ['src/cli/commands/daemon.ts', 'src/daemon/index.ts']

/** Rooms for a command or a moment of their own, which are loaded when that comes. */
const WINGS = [
  'src/cli/demo/',
  'src/cli/deploy/',
  'src/cli/documents/',
  'src/cli/preview/',
  'src/core/live/targets.ts',
  'src/core/mail/compile/compile.ts',
  'src/core/mail/lint/',
  'src/core/payments/checkout.ts',
  'src/core/store/copy.ts',
  'src/platform/init/',
  'src/witness/',
]

const faults: string[] = []
const imports = new Map<string, string[]>()
/** File → what is loaded with it. */
const loads = new Map<string, string[]>()
for (const file of globSync('src/**/*.ts').map((name) => name.split(path.sep).join('/'))) {
  const { module } = parseSync(file, readFileSync(file, 'utf8'))
  const requests = [
    ...module.staticImports.map((one) => one.moduleRequest.value),
    ...module.staticExports.flatMap((one) =>
      one.entries.flatMap((entry) => entry.moduleRequest?.value ?? []),
    ),
    ...module.dynamicImports.map((one) =>
      readFileSync(file, 'utf8').slice(one.moduleRequest.start + 1, one.moduleRequest.end - 1),
    ),
  ]
  const ours = requests.filter((request) => request.startsWith('.'))
  imports.set(
    file,
    ours.map((request) => path.posix.join(path.posix.dirname(file), request)),
  )
  const valued = [
    ...module.staticImports.filter(
      ({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType),
    ),
    ...module.staticExports.flatMap(({ entries }) => entries.filter(({ isType }) => !isType)),
  ].flatMap(({ moduleRequest }) => moduleRequest?.value ?? [])
  loads.set(
    file,
    valued
      .filter((request) => request.startsWith('.'))
      .map((request) => path.posix.join(path.posix.dirname(file), request)),
  )
  for (const request of requests) {
    if (request.startsWith('.')) checkOurs(file, path.posix.join(path.posix.dirname(file), request))
    else checkForeign(file, request)
  }
}

function checkOurs(file: string, target: string): void {
  const home = Object.keys(MAY_IMPORT).find((prefix) => file === prefix || file.startsWith(`${prefix}/`))
  const allowed = MAY_IMPORT[home ?? ''] ?? []
  if (!allowed.some((prefix) => target === prefix || target.startsWith(`${prefix}/`))) {
    faults.push(`${file} imports ${target}: ${home ?? 'this folder'} may import only ${allowed.join(', ')}`)
  }
}

function checkForeign(file: string, request: string): void {
  const name = request
    .split('/')
    .slice(0, request.startsWith('@') ? 2 : 1)
    .join('/')
  const homes = [ONE_HOME[name] ?? ''].flat()
  if (!homes.some((home) => file.startsWith(home)))
    faults.push(`${file} imports ${name}: it may appear only in ${homes.join(', ')}`)
}

const { files, folders } = findCircles(imports)
for (const circle of files) faults.push(`these files import each other in a circle: ${circle.join(', ')}`)
for (const circle of folders)
  faults.push(`these import each other in a circle, as folders: ${circle.join(', ')}`)

const started = new Set(STARTS)
for (const file of started) {
  for (const next of loads.get(file) ?? []) {
    if (WINGS.some((wing) => next.startsWith(wing)))
      faults.push(`${file} loads ${next}, and the daemon starts with it: import it when it is needed`)
    else started.add(next)
  }
}

for (const fault of faults) console.log(fault)
process.exitCode = faults.length === 0 ? 0 : 1
