import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { PATHS } from '../../src/core/paths.ts'
import { WEB } from '../../src/core/service.ts'
import { routesOf } from '../../src/daemon/routes.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { accountPlatform, token } from '../support/accounts.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'
const KB = 1024

// With a heartbeat, so that every route is served.
const definition = { preset: 'learning', heartbeats: { backup: { every: '1d' } } } as const
const platform = resolvePlatform(definition, { folder: '/' })
const web = platform.services.find(({ name }) => name === WEB)
if (web === undefined) throw new Error('every platform has it')

/** Every route that reads a body, as its own file says it. */
const routes = await Promise.all(
  routesOf(platform).map(async ({ path, load }) => ({ path, ...(await load()).route(platform, web) })),
)
const BODIED = routes.flatMap(({ path, body, security }): [string, number, string | undefined, string][] =>
  body ? [[path, body.bytes, security, body.type ?? 'application/json']] : [],
)

const ENV = {
  EMAIL_DISPATCH_SECRET: SECRET,
  ALERT_WEBHOOK_URL: 'https://hooks.example.com/x',
  PAYMENTS_SECRET_KEY: 'sk_test_4eC39HqLyjWDarjtT1zdp7dc',
  PAYMENTS_WEBHOOK_SECRET: 'whsec_of-thirty-two-bytes-at-least',
  PAYMENTS_PRICE_PRO_MONTHLY: 'price_pro_monthly',
  PAYMENTS_PRICE_TEAM_YEARLY: 'price_team_yearly',
  MAILER_FEEDBACK_PROVIDER: 'standard',
  MAILER_FEEDBACK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
}

test.each(BODIED)(
  '%s reads %d bytes of a body, and answers 413 to one more',
  async (path, bytes, security, type) => {
    const { platform } = await accountPlatform({ env: ENV, platform: definition })
    const bearer =
      security === 'dispatchSecret' ? SECRET : security === 'identity' ? await token() : undefined
    const post = (body: string) =>
      platform.web.fetch(
        new Request(`http://web.example${path.replace(':provider', 'standard').replace(':name', 'backup')}`, {
          method: 'POST',
          body,
          headers: { 'Content-Type': type, ...(bearer && { Authorization: `Bearer ${bearer}` }) },
        }),
      )
    const taken = await post(' '.repeat(bytes))
    expect([404, 405, 413]).not.toContain(taken.status)
    expect((await post(' '.repeat(bytes + 1))).status).toBe(413)
  },
)

test('each of these routes has its row in the table of budgets', () => {
  const table = readFileSync('docs/why/security.md', 'utf8')
  for (const [path, bytes] of BODIED) {
    const size = bytes === KB * KB ? '1 MB' : `${bytes / KB} KB`
    const cell = path.replace(/:(\w+)/g, '\\{$1\\}')
    expect(table, path).toMatch(new RegExp(`^\\| [^|]*\`${cell}\`[^|]* \\| ${size} `, 'm'))
  }
  expect(BODIED.map(([path]) => path)).toContain(PATHS.heartbeat)
})

/** What a file of `src` calls to read bytes that somebody else may have written. */
const READS =
  /\b(?:readFile|readFileSync|readSync|readWhole|withFile|createReadStream|readBytes|boundedBody|proxiedFetch|resolveTxt)\(|for await \(const chunk|\bbuffer\(stream\)|\.on\(\s*'data'|onResponseData|\b(?<!type )(?:get|exchange)\b[^}]*\} (?:from |= await import\()'[^']*network\/(?:get|exchange)\.ts'/

const HTTP = 'Any other answer over HTTP'
/** Each such file, by the row of the table that bounds it. Those without one read the operator's or their own files. */
const READERS: Readonly<Record<string, readonly string[]>> = {
  'JSON of any body': ['daemon/http/body.ts', 'daemon/http/context.ts'],
  'A key set (JWKS)': ['core/access/identity.ts'],
  'A certificate of Amazon SNS': ['core/mail/feedback/ses.ts'],
  'A health report of another service': ['core/health/prober.ts'],
  'A bounce or complaint by `email feedback`': ['cli/email/feedback.ts'],
  'An answer of a mail API': ['core/mail/transports/api.ts'],
  [HTTP]: [
    ...['exchange', 'get', 'proxy'].map((name) => `core/network/${name}.ts`),
    ...[
      'core/access/limit/open.ts',
      'core/health/reach.ts',
      'core/live/network.ts',
      'core/payments/checkout.ts',
      'core/payments/smoke.ts',
    ],
    ...['cli/status/status.ts', 'cli/verify-environment.ts', 'cli/web-endpoint.ts'],
    ...['witness/ask.ts', 'witness/files.ts'],
  ],
  'An env file': ['cli/environment.ts'],
  'A secret by `NAME_FILE`': ['core/env/secret-files.ts'],
  'A logo': ['platform/files.ts'],
  'A compressed backup': ['core/store/sqlite/image.ts'],
  '': [
    ...['cli/commands/deploy.ts', 'cli/deploy/subject.ts', 'cli/variables.ts', 'platform/load-platform.ts'],
    ...['core/mail/compile/files.ts', 'core/mail/folder-mails.ts', 'core/package-files.ts'],
    'platform/targets.ts',
    'core/regular-file.ts',
    ...[
      'core/daemon-record.ts',
      'daemon/spare-alerts.ts',
      'witness/witness.ts',
      'presets/learning/probes.ts',
    ],
    ...['core/store/journal.ts', 'core/store/sqlite/journal.ts', 'core/store/sqlite/connection.ts'],
    ...['cli/demo/inbox.ts', 'cli/demo/live.ts'],
  ],
}

test('every file that reads foreign bytes has its row in the table of budgets', async () => {
  const found: string[] = []
  for await (const file of glob('src/**/*.ts'))
    if (!file.startsWith('src/browser/') && READS.test(readFileSync(file, 'utf8')))
      found.push(file.slice('src/'.length))
  expect(found.toSorted()).toEqual(Object.values(READERS).flat().toSorted())
  const table = readFileSync('docs/why/security.md', 'utf8')
  for (const row of Object.keys(READERS)) expect(table).toContain(row && `\n| ${row} |`)
})
