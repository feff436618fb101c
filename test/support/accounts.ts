import path from 'node:path'
import Database from 'better-sqlite3'
import { SignJWT } from 'jose'
import { onTestFinished } from 'vitest'
import type { Message, Transport } from '../../src/core/mail/mailer.ts'
import { type RotatingSecret, rotatingSecret } from '../../src/core/secret.ts'
import { openPlatform, type PlatformOptions } from '../../src/daemon/index.ts'
import { emptyFolder } from './folder.ts'
import { testTransport } from './test-transport.ts'

export const JWT_SECRET = 'a-jwt-secret-of-thirty-two-bytes!'
export const NOW = Date.parse('2026-11-21T08:00:00Z')

const DATASTORE = {
  NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com',
  NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-datastore',
  DATASTORE_JWT_SECRET: JWT_SECRET,
}

/** A secret as settings hold it: one value, or several separated by commas. */
export function pairOf(value: string): RotatingSecret {
  const pair = rotatingSecret(value)
  if (pair === undefined) throw new TypeError('a test needs a secret')
  return pair
}

/** A token as the datastore signs it; any claim can be replaced, or left out with undefined. */
export function token(claims: Record<string, unknown> = {}, secret = JWT_SECRET): Promise<string> {
  const all = { sub: 'ada', email: 'ada@example.com', exp: NOW / 1000 + 600, ...claims }
  const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
  return new SignJWT(present).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(secret))
}

/** The fixed clock of a platform under test. */
export const clock = {
  now: () => NOW,
  monotonic: () => 0,
  sleep: () => Promise.reject(new Error('nothing here waits')),
}

/** A platform over an SQLite file of its own, with a transport that keeps what it was given. */
export async function accountPlatform({
  env = {},
  sql = '',
  ...options
}: Partial<PlatformOptions> & { sql?: string } = {}) {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  const messages: Message[] = []
  const mailer: Transport = testTransport(async (message) => {
    messages.push(message)
    return { kind: 'sent', id: `provider-${messages.length}` }
  })
  const platform = openPlatform({
    env: {
      STORE_URL: `sqlite:${file}`,
      NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
      ...DATASTORE,
      ...env,
    },
    mailer,
    clock,
    ...options,
  })
  onTestFinished(() => platform.close())
  if (sql !== '') {
    // The host's own records, written as a host does: by SQL beside the platform.
    await platform.health('web', { deep: true })
    const database = new Database(file)
    database.exec(sql)
    database.close()
  }
  const post = (target: string, body: unknown, bearer?: string, headers: Record<string, string> = {}) =>
    platform.web.fetch(
      new Request(`http://web.example${target}`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          ...(bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` }),
          ...headers,
        },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    )
  return { platform, messages, post, file }
}

/** Records as a host writes them: some for `ada`, some for others. */
export const RECORDS = `
  INSERT INTO organisation (id, name, locked_at) VALUES ('lab', 'The lab', NULL), ('lapsed', 'Lapsed', 1), ('guild', 'The guild', NULL);
  INSERT INTO organisation_admin (organisation, subject) VALUES ('lab', 'ada'), ('lapsed', 'ada'), ('guild', 'eve');
  INSERT INTO organisation_invite (id, organisation, address, url, closed_at) VALUES
    ('open', 'lab', 'grace@example.org', '/invites/open?k=1', NULL),
    ('closed', 'lab', 'grace@example.org', '/invites/closed', 5),
    ('unpaid', 'lapsed', 'grace@example.org', '/invites/unpaid', NULL);
  INSERT INTO login_request (id, address, url, expires_at) VALUES
    ('fresh', 'alan@example.org', 'https://login.example.com/?once=1', ${NOW + 1}),
    ('old', 'alan@example.org', 'https://login.example.com/?once=2', ${NOW});
  INSERT INTO exam_attempt (id, subject, exam, score_percent, url, passed_at) VALUES
    ('passed', 'ada', 'Gates & wires', 87, '/exams/passed', 5),
    ('failed', 'ada', 'Gates & wires', 12, '/exams/failed', NULL),
    ('other', 'eve', 'Gates & wires', 99, '/exams/other', 5);
`

export const bodyOf = async (response: Response) => (await response.json()) as Record<string, unknown>
