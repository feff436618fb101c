import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'oxc-parser'

/**
 * Holds the import directions of the house: folder → what it may import of ours, the one file (or folder) in which each
 * foreign package may appear, and that no files import each other in a circle.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  'src/core': ['src/core'],
  'src/presets/base': ['src/presets/base', 'src/core', 'templates/compiled'],
  'src/presets/learning': ['src/presets', 'src/core', 'templates/compiled'],
  'src/platform': ['src/platform', 'src/core', 'src/presets'],
  'src/config.ts': ['src/platform', 'src/core'],
  'src/daemon': ['src/daemon', 'src/core', 'src/platform', 'src/presets'],
  'src/cli': ['src/cli', 'src/daemon', 'src/core', 'src/platform', 'src/presets', 'package.json'],
  'src/env.ts': ['src/core', 'src/presets'],
  'src/reporting.ts': ['src/core/reporting'],
  'src/browser': ['src/browser', 'src/core/analytics', 'src/core/reporting', 'src/core/messages'],
  'src/browser.ts': ['src/browser', 'src/core/analytics', 'src/core/reporting', 'src/presets/learning'],
}

/** Rooms of core beyond the leaf files at its root, which every room may import. */
const CORE_ROOMS: Record<string, readonly string[]> = {
  // Configuration holds a sender's address and names a provider of feedback; both are the mail room's to say.
  env: ['mail/address.ts', 'mail/feedback/provider-names.ts'],
  health: ['env'],
  live: ['env', 'mail/dkim-key.ts'],
  mail: ['env', 'messages', 'access/directory.ts', 'access/identity.ts'],
  course: ['mail', 'env'],
  store: [
    'course',
    'env',
    'access/directory.ts',
    'incidents/incident.ts',
    'mail/sent-mail.ts',
    'mail/feedback',
    'payments',
    'analytics',
    'health/probe.ts',
    'status',
  ],
  // An identity's address is parsed as every other.
  access: ['env', 'mail/address.ts'],
  payments: ['env', 'access/identity.ts'],
  // What the engine says to visitors, and nothing of how it is shown.
  messages: [],
  incidents: ['health/probe.ts', 'mail', 'messages/words.ts'],
  analytics: ['messages'],
  reporting: ['analytics/personal.ts'],
  // The page of recorded health: what a probe found, and nothing of how it looked.
  status: ['health/probe.ts', 'messages'],
}

const ONE_HOME: Record<string, string> = {
  'better-sqlite3': 'src/core/store/sqlite/',
  'age-encryption': 'src/core/store/sqlite/age.ts',
  jose: 'src/core/access/identity.ts',
  pg: 'src/core/store/postgres/connection.ts',
  nodemailer: 'src/core/mail/transports/',
  mjml: 'src/core/mail/compile/',
  caniemail: 'src/core/mail/lint/support.ts',
  htmlparser2: 'src/core/mail/lint/',
  'css-select': 'src/core/mail/lint/',
  domhandler: 'src/core/mail/lint/',
  '@adobe/css-tools': 'src/core/mail/lint/',
  undici: 'src/core/',
  'node-cron': 'src/daemon/schedule.ts',
  'temporal-polyfill': 'src/core/course/zones.ts',
  hono: 'src/daemon/http/',
  '@hono/node-server': 'src/daemon/',
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

const faults: string[] = []
const imports = new Map<string, string[]>()
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
  const [room, other] = [coreRoom(file), coreRoom(target)]
  if (room === undefined || other === undefined || room === other) return
  const inside = target.slice('src/core/'.length)
  if (!(CORE_ROOMS[room] ?? []).some((prefix) => inside === prefix || inside.startsWith(`${prefix}/`))) {
    faults.push(
      `${file} imports ${target}: core/${room} may import of core only its leaf files and ${CORE_ROOMS[room]?.join(', ') || 'nothing'}`,
    )
  }
}

function checkForeign(file: string, request: string): void {
  const name = request
    .split('/')
    .slice(0, request.startsWith('@') ? 2 : 1)
    .join('/')
  const home = ONE_HOME[name]
  if (home !== undefined && !file.startsWith(home))
    faults.push(`${file} imports ${name}: it may appear only in ${home}`)
}

function coreRoom(file: string): string | undefined {
  return /^src\/core\/([^/]+)\//.exec(file)?.[1]
}

for (const circle of circlesOf(imports))
  faults.push(`these files import each other in a circle: ${circle.join(', ')}`)

for (const fault of faults) console.log(fault)
process.exitCode = faults.length === 0 ? 0 : 1

/** Files that reach each other over their imports, those of types and those that load later too (Tarjan). */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const circles: string[][] = []
  const index = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: string[] = []
  const visit = (file: string) => {
    index.set(file, index.size)
    lowest.set(file, index.get(file) ?? 0)
    open.push(file)
    for (const next of graph.get(file) ?? []) {
      if (!graph.has(next)) continue
      if (!index.has(next)) visit(next)
      else if (!open.includes(next)) continue
      lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(next) ?? 0))
    }
    if (lowest.get(file) !== index.get(file)) return
    const circle = open.splice(open.indexOf(file))
    if (circle.length > 1) circles.push(circle)
  }
  for (const file of graph.keys()) if (!index.has(file)) visit(file)
  return circles
}
