import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import packageJson from '../package.json' with { type: 'json' }
import { exampleFile } from '../src/core/env/example.ts'
import { referencePage } from '../src/core/env/reference.ts'
import { healthDocumentSchema } from '../src/core/health/document-schema.ts'
import { healthReference } from '../src/core/health/reference.ts'
import { reportSchema } from '../src/core/live/report-schema.ts'
import { mailReference } from '../src/core/mail/reference.ts'
import { metricsReference } from '../src/daemon/metrics/reference.ts'
import { openapiDocument } from '../src/daemon/openapi/document.ts'
import { errorReference, httpReference } from '../src/daemon/openapi/reference.ts'
import { apiReference } from './api-reference.ts'
import { commandsPage, manPage } from './command-pages.ts'
import { eventsPage } from './events-page.ts'
import { findingsPage } from './findings-page.ts'
import { COMPILED_MAILS, compiledMailsFile } from './mails.ts'

/**
 * Makes every file that is made from another: `npm run make` writes them, `--check` fails while one is stale.
 */
const root = fileURLToPath(new URL('..', import.meta.url))
const MADE: Record<string, () => string | Promise<string>> = {
  '.env.example': exampleFile,
  'docs/reference/api.md': () => apiReference({ root, exports: packageJson.exports }),
  'docs/reference/errors.md': errorReference,
  'docs/reference/http.md': () =>
    httpReference(
      openapiDocument({
        web: 'http://localhost:3000',
        api: 'http://127.0.0.1:8000',
        agent: 'http://127.0.0.1:8100',
      }),
    ),
  'docs/reference/events.md': eventsPage,
  'docs/reference/variables.md': referencePage,
  'docs/reference/report.schema.json': () => `${JSON.stringify(reportSchema(), null, 2)}\n`,
  'docs/reference/commands.md': commandsPage,
  'docs/reference/findings.md': findingsPage,
  'man/platformctl.1': manPage,
  'docs/reference/health.md': healthReference,
  'docs/reference/health.schema.json': () => `${JSON.stringify(healthDocumentSchema(), null, 2)}\n`,
  'docs/reference/mail.md': mailReference,
  'docs/reference/metrics.md': metricsReference,
  [COMPILED_MAILS]: compiledMailsFile,
}

for (const [file, make] of Object.entries(MADE)) {
  const made = await make()
  const full = path.join(root, file)
  if (process.argv.includes('--check')) {
    const found = await readFile(full, 'utf8').catch(() => undefined)
    if (found !== made) {
      console.log(`${file} is stale: npm run make`)
      process.exitCode = 1
    }
  } else {
    await mkdir(path.dirname(full), { recursive: true })
    await writeFile(full, made)
  }
}
