import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ALARM_FAULTS } from '../../scripts/drill/alarms.ts'
import { FAULTS } from '../../scripts/drill/faults.ts'
import { MOST_FIXES, MOST_LOOKS } from '../../scripts/drill/machine.ts'

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const ALARMS = [...read('runbooks/alerts.yaml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
const DRILLS = [...FAULTS, ...ALARM_FAULTS]

test('every alarm has a drill from its fault to "closed", and fires before a real Prometheus', () => {
  expect(ALARMS.length).toBeGreaterThan(15)
  expect(new Set(DRILLS.flatMap(({ alarms = [] }) => alarms))).toEqual(new Set(ALARMS))
  const fires = read('test/servers/alarms.test.ts')
  expect(ALARMS.filter((name) => !fires.includes(`'${name}'`))).toEqual([])
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
