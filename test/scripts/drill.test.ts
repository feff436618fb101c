import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ALERT_FAULTS } from '../../scripts/drill/alerts.ts'
import { FAULTS } from '../../scripts/drill/faults.ts'
import { MOST_FIXES, MOST_LOOKS } from '../../scripts/drill/machine.ts'

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const ALERTS = [...read('runbooks/alerts.yaml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
const DRILLS = [...FAULTS, ...ALERT_FAULTS]

test('every alert has a drill from its fault to "closed", and fires before a real Prometheus', () => {
  expect(ALERTS.length).toBeGreaterThan(15)
  expect(new Set(DRILLS.flatMap(({ alerts = [] }) => alerts))).toEqual(new Set(ALERTS))
  const fires = read('test/servers/alerts.test.ts')
  expect(ALERTS.filter((name) => !fires.includes(`'${name}'`))).toEqual([])
})

test.each(DRILLS)('the drill "$name" is short, and its page has the section', ({ look, fix, page }) => {
  expect(look.length).toBeLessThanOrEqual(MOST_LOOKS)
  expect(fix.length).toBeLessThanOrEqual(MOST_FIXES)
  const [file = '', section] = page.split('#')
  const headings = [...read(`runbooks/${file}`).matchAll(/^#+ (.*)$/gm)].map(([, text = '']) =>
    text.toLowerCase().replaceAll(' ', '-'),
  )
  if (section !== undefined) expect(headings).toContain(section)
})
