import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { hasProgram } from '../support/programs.ts'

const here = ['prometheus', 'promtool'].every((name) => hasProgram([name, '--version'], 'prometheus'))

const file = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))
const promtool = (args: readonly string[], input = '') =>
  execa('promtool', args, { input, reject: false, all: true, cwd: file('test/servers') })

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}
const dashboard = JSON.parse(readFileSync(file('runbooks/dashboard.json'), 'utf8')) as {
  readonly panels: readonly Panel[]
  readonly annotations: { readonly list: readonly { readonly expr: string }[] }
}
const queries = [
  ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr }))),
  ...dashboard.annotations.list.map(({ expr }) => ({ title: 'annotations', expr })),
].map(({ title, expr }) => ({
  title,
  expr: expr.replaceAll('$job', 'platformctl').replaceAll('$__rate_interval', '1m'),
}))

describe.runIf(here)('with a real Prometheus', () => {
  test('the alert rules are sound, fire in trouble and are silent in health', async () => {
    const checked = await promtool(['check', 'rules', file('runbooks/alerts.yaml')])
    expect(checked.all).toContain('SUCCESS: 23 rules found')
    const tested = await promtool(['test', 'rules', file('test/servers/alerts.test.yaml')])
    expect(tested.all).toContain('SUCCESS')
    expect(tested.exitCode).toBe(0)
  })

  test('the daemon’s metrics are clean, are scraped while a service fails, and every panel of the dashboard has data', async () => {
    const cwd = await emptyFolder()
    // The agent's own API is down, so web and agent fail: their metrics must be read all the same.
    const daemon = await startDaemon(['--data', 'data', '--no-schedule'], {
      cwd,
      env: {
        API_URL: 'http://127.0.0.1:1',
        BUILD_STAMP: 'b1',
        EMAIL_DISPATCH_SECRET: 'a-dispatch-secret-of-thirty-two-b',
      },
    })
    onTestFinished(async () => void (await daemon.stop()))
    const { host } = new URL(daemon.urls.web)
    const metrics = async () => {
      const answer = await fetch(`${daemon.urls.web}/metrics`)
      expect(answer.status).toBe(200)
      return answer.text()
    }
    await expect
      .poll(metrics, { timeout: 10_000 })
      .toContain('platformctl_service_state{service="web",state="failing"} 1')
    const clean = await promtool(['check', 'metrics'], await metrics())
    expect(clean.all).toBe('')
    expect(clean.exitCode).toBe(0)

    const config = path.join(cwd, 'prometheus.yml')
    writeFileSync(
      config,
      `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ['${file('runbooks/alerts.yaml')}']
scrape_configs:
  - job_name: platformctl
    static_configs: [{ targets: ['${host}'] }]
`,
    )
    const address = `127.0.0.1:${await freePort()}`
    const prometheus = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${path.join(cwd, 'tsdb')}`,
        `--web.listen-address=${address}`,
        '--log.level=error',
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    )
    const ended = new Promise((resolve) => prometheus.once('exit', resolve))
    onTestFinished(async () => {
      prometheus.kill()
      await ended
    })
    const query = async (expr: string) => {
      const answer = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(expr)}`).catch(
        () => undefined,
      )
      const body = (await answer?.json()) as
        | { status: string; error?: string; data: { result: { value: [number, string] }[] } }
        | undefined
      if (body?.status === 'error') throw new Error(`${expr}: ${body.error}`)
      return body?.data.result ?? []
    }
    await expect
      .poll(() => query('count_over_time(up{job="platformctl"}[1m]) >= 3 and up == 1'), { timeout: 15_000 })
      .toHaveLength(1)
    await fetch(`${daemon.urls.web}/lessons/1`)
    await fetch(`${daemon.urls.web}/api/email/dispatch`, {
      method: 'POST',
      headers: { Authorization: 'Bearer a-dispatch-secret-of-thirty-two-b' },
    })
    await expect
      .poll(() => query('increase(platformctl_dispatches_total{result="off"}[1m]) > 0'), { timeout: 15_000 })
      .toHaveLength(1)
    for (const { title, expr } of queries) {
      const found = await query(expr)
      // No deployment happened in these seconds.
      if (title !== 'annotations') expect(found.length, `${title}: ${expr}`).toBeGreaterThan(0)
    }
    expect(await query('ALERTS{alertname="PlatformServiceFailing", alertstate="pending"}')).not.toHaveLength(
      0,
    )
  }, 60_000)
})
