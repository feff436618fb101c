import { expect, test } from 'vitest'
import { SOUND_LINES } from '../../bench/filled-env.ts'
import { parseEnvFile } from '../../src/core/env/reader.ts'
import { validate } from '../../src/core/env/validate.ts'
import { contract } from '../support/learning.ts'

test('the env file of the benchmarks that sets all that it can passes', () => {
  const { assignments } = parseEnvFile(contract, SOUND_LINES.join('\n'), '.env')
  const { ok, findings } = validate(
    contract,
    Object.fromEntries(assignments.map(({ name, value }) => [name, value])),
  )
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  expect(ok).toBe(true)
})
