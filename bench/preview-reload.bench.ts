import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { servePreview } from '../src/cli/preview/server.ts'
import { openWorkshop } from '../src/cli/preview/workshop.ts'
import { learning } from '../src/presets/learning/platform.ts'
import type { Benchmark } from './harness.ts'

export const benchmark: Benchmark = {
  name: 'preview-reload',
  title: 'Preview: from saving a lesson to seeing it',
  unit: 'ms',
  better: 'lower',
  promises: [{ against: 'the time allowed', ratio: 1 }],
  notes: 'In Chromium, timed from before the file is written.',
  async open(opened) {
    const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
    opened.defer(() => rm(folder, { recursive: true, force: true }))
    await cp(fileURLToPath(new URL('../templates', import.meta.url)), folder, { recursive: true })
    const workshop = opened.adopt(openWorkshop({ ...learning.mails, folders: [{ path: folder }] }), (one) =>
      one.close(),
    )
    const preview = opened.adopt(
      await servePreview(
        workshop,
        0,
        { missing: 'not here', recipients: [], send: async () => ({ sent: false, reason: 'not here' }) },
        { courses: [], language: 'en', zone: 'UTC', now: Date.now },
      ),
      (one) => one.close(),
    )
    const browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu'],
    })
    opened.defer(() => browser.close())
    const page = await browser.newPage({ viewport: { width: 1280, height: 860 } })
    await page.goto(`${preview.url}/#course-day-1`)
    const file = path.join(folder, 'course-day-1.md')
    const source = await readFile(file, 'utf8')
    let count = 0
    return {
      contenders: [
        {
          name: 'platformctl email preview',
          role: 'ours',
          async measure() {
            // The gallery and the findings of the save before are done.
            await page.waitForTimeout(1500)
            count += 1
            const title = `Version ${count}`
            const seen = page.evaluate(`new Promise((resolve) => {
              const look = () =>
                document.querySelector('#view iframe:not(.next)')?.contentDocument?.querySelector('h1')?.textContent === '${title}'
                  ? resolve()
                  : requestAnimationFrame(look)
              look()
            })`)
            const started = performance.now()
            await writeFile(file, source.replace('# What a qubit is', `# ${title}`))
            await seen
            return performance.now() - started
          },
        },
        { name: 'the time allowed', role: 'floor', measure: async () => 150 },
      ],
    }
  },
}
