import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openWorkshop } from '../../../src/cli/preview/workshop.ts'
import { resolvePlatform } from '../../../src/platform/resolve.ts'
import { folderWith } from '../../support/folder.ts'

const mail = (subject: string) => `---\nsubject: ${subject}\npreheader: ${subject}\n---\n\nClay.\n`

test('a saved layout shows anew every mail that it surrounds, lessons and translations of other folders too', async () => {
  const layout = await readFile(new URL('../../../templates/base/layout.mjml', import.meta.url), 'utf8')
  const folder = await folderWith({
    'mails/layout.mjml': layout,
    'mails/opening.md': mail('Opening'),
    'mails/de/opening.md': mail('Willkommen'),
    'firing/1-clay.md': mail('Wedging'),
  })
  const courses = { firing: { lessons: './firing', every: '1d' } }
  const templates = { opening: {} }
  const { mails } = resolvePlatform({ preset: 'base', mails: './mails', templates, courses }, { folder })
  const workshop = openWorkshop(mails)
  onTestFinished(() => workshop.close())
  const own = workshop.names.filter((name) => /opening|firing/.test(name))
  expect(own).toHaveLength(3)
  const shown = () => Promise.all(own.map(async (name) => (await workshop.rendered(name)).html))
  for (const html of await shown()) expect(html).not.toContain('of fired earth')
  const saved: string[] = []
  workshop.onSave((names) => saved.push(...names))
  const changed = layout.replace(
    '</mj-body>',
    '<mj-section><mj-column><mj-text>of fired earth</mj-text></mj-column></mj-section></mj-body>',
  )
  expect(changed).not.toBe(layout)
  await writeFile(path.join(folder, 'mails/layout.mjml'), changed)
  await expect.poll(() => saved).toEqual(expect.arrayContaining(own))
  for (const html of await shown()) expect(html).toContain('of fired earth')
})
