import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { run } from '../support/run.ts'

/** Files as projects have them, with what a person should be told about each, and nothing more. */
const cwd = fileURLToPath(new URL('../fixtures/env-files/', import.meta.url))

async function told(file: string): Promise<string[]> {
  const { stdout } = await run(['env', 'check', file, '--format', 'json'], { cwd })
  const { findings } = JSON.parse(stdout) as {
    findings: { id: string; severity: string; present: string[]; location?: { line: number } }[]
  }
  return findings
    .filter(({ severity }) => severity !== 'notice')
    .map(({ id, present, location }) => `${location?.line ?? '–'} ${id} ${present.join(' ')}`.trim())
}

test('a file of a Next.js project: a slip in a name, a live key, and what docker makes of quotes', async () => {
  expect(await told('nextjs.env')).toEqual([
    '10 live-key-outside-production NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY',
    '15 unknown-name MAILER_FORM',
    ...[2, 4, 5, 6, 7, 14, 15].map((line) => expect.stringMatching(`^${line} reader-difference `)),
  ])
})

test('a file for docker run: quotes that it keeps, a comment that it does not see', async () => {
  expect(await told('docker.env')).toEqual([
    '3 reader-difference POSTGRES_PASSWORD',
    '6 reader-difference MAILER_API_KEY',
    '10 reader-difference PATH_PREFIX',
  ])
})

test('a file of a Rails project: exports, references, a key of several lines, a number with underscores', async () => {
  expect(await told('rails.env')).toEqual([
    '11 malformed-value RATE_LIMIT_PER_MINUTE',
    '1 refused-by-reader',
    ...[1, 2, 3, 4, 5, 6].map((line) => expect.stringMatching(`^${line} reader-difference `)),
    '12 reader-difference SMTP_PASSWORD',
    '13 reader-difference BCRYPT_HASH',
  ])
})

test('a file from Windows: the BOM hides the first name from some readers', async () => {
  expect(await told('windows.env')).toEqual(['1 reader-difference STORE_URL'])
  const { stdout } = await run(['env', 'check', 'windows.env'], { cwd })
  expect(stdout).toContain(
    'STORE_URL depends on the reader: node and systemd take the byte order mark before it as a',
  )
  expect(stdout).toContain('Save the file as UTF-8 without a byte order mark (BOM).')
})

test('a file of a systemd unit: its own comments and continued lines', async () => {
  expect(await told('systemd.env')).toEqual([
    '1 unreadable-line',
    '7 unreadable-line',
    '1 refused-by-reader',
    '6 reader-difference EMAIL_DISPATCH_SECRET',
  ])
})
