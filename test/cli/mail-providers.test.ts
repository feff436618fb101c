import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { readSettings } from '../../src/core/env/settings.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'

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
    const folder = await emptyFolder()
    await writeFile(path.join(folder, '.env'), text)
    const { context, stdout } = testContext({ cwd: folder })
    expect(await runProgram(['env', 'check', '.env', '--strict'], context), stdout()).toBe(0)
    const { mail, feedback } = readSettings(learning, parseEnv(text))
    expect({ route: mail?.route, feedback: feedback?.provider }).toMatchObject(EXPECTED[name] ?? {})
  },
)
