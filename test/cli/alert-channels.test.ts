import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { webhookFormat } from '../../src/core/incidents/webhook.ts'
import { createScrub } from '../../src/core/reporting/scrub.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { folderWith } from '../support/folder.ts'
import { run } from '../support/run.ts'
import { serveBodies } from '../support/servers.ts'

const page = (name: string) => readFileSync(new URL(`../../${name}.md`, import.meta.url), 'utf8')
const BLOCKS = [...page('runbooks/alerts').matchAll(/^### (.+)\n[^#]*?```env\n([\s\S]+?)```/gm)].map(
  ([, name = '', text = '']) => ({ name, text }),
)
/** What each receiver documents as the field that holds the message. */
const EXPECTED: Readonly<Record<string, readonly [format: string, body: RegExp]>> = {
  Slack: ['slack', /^\{"text":/],
  Discord: ['discord', /^\{"content":/],
  'Microsoft Teams': ['teams', /AdaptiveCard/],
  Telegram: ['telegram', /^\{"chat_id":"-1001837465920","text":/],
  ntfy: ['ntfy', /^[^{]/],
  PagerDuty: ['pagerduty', /"routing_key":"f3a9c1e75b2d48608e4c7a1d90b5f362","event_action":"trigger"/],
  'Your own program': ['json', /^\{"type":"alert.test"/],
  'By mail, and to a second place': ['slack', /^\{"text":/],
}

test('each chat of the page has a block', () => {
  expect(BLOCKS.map(({ name }) => name)).toEqual(Object.keys(EXPECTED))
  // The test of a block also shows that no report has the secret of its address.
  const formats = Object.values(EXPECTED).map(([format]) => format)
  expect(new Set(formats)).toEqual(new Set(learning.contract.find('ALERT_WEBHOOK_FORMAT')?.of))
})

test.each(BLOCKS)(
  'the block for $name passes strictly, its secret is in no report, and a test alert arrives as its receiver reads it',
  async ({ name, text }) => {
    const [format, body = /^$/] = EXPECTED[name] ?? []
    const [, mail = ''] = /```env\n([\s\S]+?)```/.exec(page('docs/guides/mail-providers')) ?? []
    const cwd = await folderWith({ '.env': text.includes('EMAIL_TO') ? `${mail}${text}` : text })
    expect(await run(['env', 'check', '.env', '--strict'], { cwd })).toMatchObject({ code: 0 })

    const bodies: string[] = []
    const url = await serveBodies((body, response) => {
      bodies.push(body)
      response.end()
    })
    // The address decides the format, and leads to this machine here.
    const { ALERT_WEBHOOK_URL = '', ALERT_WEBHOOK_SECRET } = parseEnv(text)
    const reported = createScrub().text(`POST ${ALERT_WEBHOOK_URL} failed`)
    for (const [long] of ALERT_WEBHOOK_URL.matchAll(/[\w-]{24,}/g)) expect(reported).not.toContain(long)
    const env = {
      ALERT_WEBHOOK_URL: `${url}/${new URL(ALERT_WEBHOOK_URL).search}`,
      ALERT_WEBHOOK_FORMAT: webhookFormat(ALERT_WEBHOOK_URL),
      ...(ALERT_WEBHOOK_SECRET && { ALERT_WEBHOOK_SECRET }),
    }
    expect(await run(['alert', 'test'], { cwd, env })).toMatchObject({ code: 0 })
    expect([env.ALERT_WEBHOOK_FORMAT, bodies[0]]).toEqual([format, expect.stringMatching(body)])
  },
)
