import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ALERT_FAULTS } from '../../scripts/drill/alerts.ts'
import { FAULTS } from '../../scripts/drill/faults.ts'
import { MOST_FIXES, MOST_LOOKS } from '../../scripts/drill/machine.ts'
import { CELLS, draw, IN_SCOPE, idleRules } from '../../scripts/drill/product.ts'

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

test('every cell of component, way to fail and time is in scope or has a reason, and at least 120 are', () => {
  expect(CELLS).toHaveLength(13 * 8 * 4)
  expect(new Set(CELLS.map(({ name }) => name)).size).toBe(CELLS.length)
  expect(CELLS.filter(({ reason }) => reason !== undefined && !/\w+ \w+/.test(reason))).toEqual([])
  expect(idleRules()).toEqual([])
  expect(IN_SCOPE.length).toBeGreaterThanOrEqual(120)
})

test('a seed always draws the same cells, no component twice while there is another', () => {
  const names = (seed: number) => draw(seed, 12).map(({ name }) => name)
  expect(names(7)).toEqual(names(7))
  expect(names(7)).not.toEqual(names(8))
  expect(new Set(draw(7, 13).map(({ component }) => component)).size).toBe(13)
  const all = draw(7, 1000)
  expect(new Set(all)).toEqual(new Set(IN_SCOPE))
  expect(all).toHaveLength(IN_SCOPE.length)
})
