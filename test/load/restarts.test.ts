import { expect, test } from 'vitest'
import { restarts } from '../../scripts/load/restarts.ts'

test('SIGTERM under load ends with 0 and loses no acknowledged request', { timeout: 60_000 }, async () => {
  const { acknowledged, lost, unclean } = await restarts({ times: 10, seed: 7 })
  expect(unclean).toEqual([])
  expect(lost).toEqual([])
  expect(acknowledged).toBeGreaterThan(100)
})
