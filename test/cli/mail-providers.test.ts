import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { readSettings } from '../../src/core/env/settings.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { folderWith } from '../support/folder.ts'
import { run } from '../support/run.ts'

const PAGE = readFileSync(new URL('../../docs/guides/mail-providers.md', import.meta.url), 'utf8')
const BLOCKS = [...PAGE.matchAll(/^## (.+)\n\n```env\n([\s\S]+?)```/gm)].map(([, name = '', text = '']) => ({
  name,
  text,
}))
/** Where the mail of each goes, and whose reports of bounces are believed. */
const EXPECTED: Readonly<Record<string, object>> = {
  Postmark: { route: { kind: 'api', provider: 'postmark' }, feedback: 'postmark' },
  'Amazon SES': { route: { kind: 'api', provider: 'ses' }, feedback: 'ses' },
  Resend: { route: { kind: 'api', provider: 'resend' }, feedback: 'resend' },
  Mailgun: { route: { kind: 'smtp' }, feedback: 'mailgun' },
  SendGrid: { route: { kind: 'smtp' }, feedback: 'sendgrid' },
  'Your host’s SMTP server': { route: { kind: 'smtp' }, feedback: undefined },
  'Your own mail server': { route: { kind: 'smtp' }, feedback: undefined },
}

test('each provider of the page has a block', () => {
  expect(BLOCKS.map(({ name }) => name)).toEqual(Object.keys(EXPECTED))
})

test.each(BLOCKS)(
  'the block for $name passes strictly, and configures mail as its page says',
  async ({ name, text }) => {
    const cwd = await folderWith({ '.env': text })
    expect(await run(['env', 'check', '.env', '--strict'], { cwd })).toMatchObject({ code: 0 })
    const { mail, feedback } = readSettings(learning, parseEnv(text))
    expect({ route: mail?.route, feedback: feedback?.provider }).toMatchObject(EXPECTED[name] ?? {})
  },
)
