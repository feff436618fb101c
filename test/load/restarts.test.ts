import { expect, test } from 'vitest'
import { restarts } from '../../scripts/load/restarts.ts'

test('SIGTERM under load ends with 0 and loses no acknowledged request', { timeout: 60_000 }, async () => {
  const times = 10
  const { acknowledged, lost, unclean } = await restarts({ times, seed: 7 })
  expect(unclean).toEqual([])
  expect(lost).toEqual([])
  // How many more is a matter of the machine and of what else it does.
  expect(acknowledged).toBeGreaterThan(times)
})
