import { expect, test } from 'vitest'
import { planFaults, plansToCheck } from '../../../src/core/store/plans.ts'

const HOUR = 3_600_000
const NOW = 100 * HOUR
const plan = (version: string, unusedSince?: number, json: unknown = {}) => ({
  course: 'pottery',
  version,
  plan: JSON.stringify(json),
  unusedSince,
})

test('looks for readers of plans without new enrolments, but not again within a day of finding none', () => {
  const plans = [
    plan('current'),
    plan('followed'),
    plan('unused an hour', NOW - HOUR),
    plan('unused a day', NOW - 24 * HOUR),
  ]
  expect(plansToCheck(plans, { keep: ['current'], now: NOW }).map(({ version }) => version)).toEqual([
    'followed',
    'unused a day',
  ])
})

test('a plan without texts, or a damaged one, has no faults of its own', () => {
  const damaged = { ...plan('damaged'), plan: 'not JSON' }
  expect(planFaults([plan('old'), plan('odd', undefined, { texts: 'none' }), damaged], [])).toEqual([])
  expect(planFaults([plan('v', undefined, { texts: [{ '': 'lost' }] })], [])).toEqual([
    'course pottery: the lesson text lost of version v is missing; its readers get the current text',
  ])
})
