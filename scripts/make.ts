import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import packageJson from '../package.json' with { type: 'json' }
import { TARGETS } from '../src/cli/commands/deploy.ts'
import { describe } from '../src/cli/deploy/subject.ts'
import { exampleFile } from '../src/core/env/schema.ts'
import { openapiDocument } from '../src/daemon/routes/openapi.ts'
import { routesOf } from '../src/daemon/routes.ts'
import { loadPlatform } from '../src/platform/load-platform.ts'
import { learning } from '../src/presets/learning/platform.ts'
import { outcomeRules } from './alert-rules.ts'
import { apiReference } from './api-reference.ts'
import { commandsPage, manPage } from './command-pages.ts'
import { eventsPage } from './events-page.ts'
import { findingsPage } from './findings-page.ts'
import { httpSchema, jsonSchemas } from './json-schemas.ts'
import { COMPILED_MAILS } from './mails.ts'
import { healthReference } from './reference/health.ts'
import { errorReference, httpReference } from './reference/http.ts'
import { kindsReference } from './reference/kinds.ts'
import { mailReference } from './reference/mail.ts'
import { metricsReference } from './reference/metrics.ts'
import { reference } from './reference/platform.ts'
import { referencePage } from './reference/variables.ts'

/**
 * Makes every file that is made from another: `npm run make` writes them, `--check` fails while one is stale.
 */
const root = fileURLToPath(new URL('..', import.meta.url))
/** The schemas name what the default platform has, and a heartbeat for its route; `env schema` prints those of another. */
const DEFAULT = { ...learning, heartbeats: reference.heartbeats }
const MADE_RULES = '      # From here on made from src/daemon/metrics/outcomes.ts by npm run make.\n'
const MADE: Record<string, () => string | Promise<string>> = {
  '.env.example': () => exampleFile(learning.contract),
  'examples/ceramics/.env.example': async () =>
    exampleFile(
      (
        await loadPlatform({
          folder: path.join(root, 'examples/ceramics'),
          file: 'platform.config.ts',
          configModule: path.join(root, 'src/config.ts'),
        })
      ).contract,
    ),
  'docs/reference/api.md': () => apiReference({ root, exports: packageJson.exports }),
  'docs/reference/errors.md': errorReference,
  'docs/reference/http.md': async () =>
    httpReference(
      await openapiDocument(reference, routesOf(reference), (service) => {
        const port = reference.services.find(({ name }) => name === service)?.port
        return `http://${service === 'web' ? 'localhost' : '127.0.0.1'}:${port}`
      }),
    ),
  'docs/reference/events.md': eventsPage,
  'docs/reference/kinds.md': kindsReference,
  'docs/reference/variables.md': () => referencePage(learning.contract),
  'docs/reference/commands.md': commandsPage,
  'docs/reference/findings.md': findingsPage,
  'man/platformctl.1': manPage,
  'docs/reference/health.md': () => healthReference(reference.services),
  'docs/reference/mail.md': () => mailReference(reference.mails.definitions),
  'docs/reference/metrics.md': metricsReference,
  'runbooks/alerts.yaml': async () => {
    const [own = ''] = (await readFile(path.join(root, 'runbooks/alerts.yaml'), 'utf8')).split(MADE_RULES)
    return own + MADE_RULES + outcomeRules()
  },
  ...Object.fromEntries(
    Object.entries({ ...jsonSchemas(DEFAULT), http: await httpSchema(DEFAULT) }).map(([name, schema]) => [
      `docs/reference/schemas/${name}.schema.json`,
      () => `${JSON.stringify(schema, null, 2)}\n`,
    ]),
  ),
  ...COMPILED_MAILS,
  ...Object.fromEntries(
    Object.values(TARGETS).flatMap(({ folder, files }) =>
      files(describe(learning), { folder: `${folder}/`, up: path.relative(folder, '') }).map((file) => [
        path.posix.join(folder, file.path),
        () => file.text,
      ]),
    ),
  ),
}

/** The files that are not as they would be made now. */
export async function stale(): Promise<string[]> {
  const found: string[] = []
  for (const [file, make] of Object.entries(MADE))
    if ((await readFile(path.join(root, file), 'utf8').catch(() => undefined)) !== (await make()))
      found.push(file)
  return found
}

if (import.meta.main && process.argv.includes('--check'))
  for (const file of await stale()) {
    console.log(`${file} is stale: npm run make`)
    process.exitCode = 1
  }
else if (import.meta.main)
  for (const [file, make] of Object.entries(MADE)) {
    await mkdir(path.dirname(path.join(root, file)), { recursive: true })
    await writeFile(path.join(root, file), await make())
  }
