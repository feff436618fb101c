import { readSettings } from '../../core/env/settings.ts'
import type { SmokeCheck } from '../../core/payments/smoke.ts'
import { trimEnd } from '../../core/trim-end.ts'
import { command, type Define } from '../command.ts'
import { EXIT, failure, loadPaint, openProgress, wrongUsage } from '../context.ts'
import { loadEnvironment } from '../environment.ts'
import { ENV_FILE } from '../inputs.ts'

const MARK = { passed: '✔', failed: '✖', unreached: '✖', skipped: '○' } as const
const STYLE = { passed: 'green', failed: 'red', unreached: 'red', skipped: 'dim' } as const

export const define: Define = () => ({
  description: 'Try payments end to end without moving money.',
  examples: ['smoke --env-file .env'],
  commands: {
    smoke: command({
      summary: 'keys, prices, a checkout that is expired at once, and a signed webhook',
      description:
        'Try payments end to end without moving money: the mode of the keys, each price (exists, active, recurring, one currency), a checkout session that is opened and expired, and a signed webhook to the running web service.',
      exits:
        '0 passed, 1 a check failed, 2 not configured or a live key without --live, 3 not reached or key refused.',
      examples: [
        '--env-file .env',
        '--env-file .env --no-webhook',
        '--env-file .env.production --live --url https://www.example.com',
      ],
      document: 'billing smoke',
      inputs: {
        '--url <url>':
          'address of the web service (default: NEXT_PUBLIC_SITE_URL, else http://localhost:3000)',
        '--no-webhook': 'leave the web service out',
        '--live': 'use live keys; a session is opened and expired there too',
        ...ENV_FILE,
      },
      async run(context, { url, webhook, live, envFile }) {
        const { keyModeOf, smoke } = await import('../../core/payments/smoke.ts')
        const { env } = await loadEnvironment(context, envFile)
        const { payments, site } = readSettings(context.platform, env)
        if (payments === undefined)
          throw wrongUsage(
            'payments are not configured, or only partly: run platformctl preflight to see what is missing.',
          )
        const mode = keyModeOf(payments)
        if (mode === 'live' && !live)
          throw wrongUsage(
            'PAYMENTS_SECRET_KEY is a live key, so nothing was tried: use a test key, or add --live.',
          )
        const paint = await loadPaint(context.colour.stdout)
        const webUrl = webhook ? addressOf(url ?? site.siteUrl) : undefined
        const checks: SmokeCheck[] = []
        const progress = await openProgress(context, 'asking the payments API')
        const input = { payments, webUrl, siteUrl: site.siteUrl, mode, signal: context.signal }
        for await (const check of smoke(context, input)) {
          checks.push(check)
          progress.show(`${check.name}: ${check.state}`)
          if (context.signal.aborted) break
        }
        progress.end()
        if (context.signal.aborted) throw failure('interrupted before everything was tried.')
        const lines = checks.map(
          ({ state, name, finding }) => `${paint[STYLE[state]](MARK[state])} ${name.padEnd(20)}${finding}\n`,
        )
        const has = (wanted: SmokeCheck['state']) => checks.some(({ state }) => state === wanted)
        const exit = has('failed') ? EXIT.failed : has('unreached') ? EXIT.remote : EXIT.passed
        return { json: { ok: exit === EXIT.passed, mode, checks }, text: lines.join(''), exit }
      },
    }),
  },
})

function addressOf(url: string): string {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw wrongUsage('the address of the web service is not an http:// or https:// address.')
  return trimEnd(url, '/')
}
