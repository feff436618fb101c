import { expect, test } from 'vitest'
import { createContract } from '../../../src/core/env/contract.ts'
import { nearestName } from '../../../src/core/env/validate.ts'
import foreign from '../../fixtures/foreign-variables.json' with { type: 'json' }
import { contract, VARIABLES } from '../../support/learning.ts'

const NAMES = VARIABLES.map(({ name }) => name)
/** Those that names often have, and two that they seldom do. */
const LETTERS = 'AEIORSTQZ_'

/** Every name that one slip of the pen, with one of the letters, makes of this one. */
function slips(name: string): Set<string> {
  const made = new Set<string>()
  for (let at = 0; at <= name.length; at += 1) {
    const [before, after] = [name.slice(0, at), name.slice(at)]
    made.add(before + after.slice(1))
    made.add(before + after.charAt(1) + after.charAt(0) + after.slice(2))
    for (const letter of LETTERS) {
      made.add(before + letter + after)
      made.add(before + letter + after.slice(1))
    }
  }
  return made
}

test('at least 95 % of all single slips in the names are answered with the right name', () => {
  let [all, caught] = [0, 0]
  for (const name of NAMES) {
    for (const slip of slips(name)) {
      if (NAMES.includes(slip)) continue
      all += 1
      if (nearestName(contract, slip) === name) caught += 1
    }
  }
  expect(all).toBeGreaterThan(20_000)
  expect(caught / all).toBeGreaterThanOrEqual(0.95)
})

test('a name in another case or with other separators is recognised', () => {
  expect(nearestName(contract, 'mailer_from')).toBe('MAILER_FROM')
  expect(nearestName(contract, 'MAILER-FROM')).toBe('MAILER_FROM')
})

test.each([
  ['MAILER_FOXM', 'two letters of which one has changed places'],
  ['MAILER_FXYM', 'two other letters'],
  ['MAILER_FROXYM', 'two letters more'],
  ['MAILER_FM', 'two letters fewer'],
])('%s is no slip of MAILER_FROM: %s', (name) => {
  expect(nearestName(contract, name)).toBeUndefined()
})

const kiln = createContract({
  services: ['web'],
  groups: {
    kiln: {
      services: 'all',
      unlocks: 'a',
      absent: 'b',
      variables: {
        A_KEY: { kind: 'secret' },
        AKEY_FILE: { kind: 'path' },
        KILN: { kind: 'text' },
        OVENS: { kind: 'text' },
      },
    },
  },
})

test('a name of four letters is too short to tell a slip', () => {
  expect(nearestName(kiln, 'KILM')).toBeUndefined()
  expect(nearestName(kiln, 'OVENZ')).toBe('OVENS')
})

test('takes a name close to both a variable and its secret file as the variable', () => {
  expect(nearestName(kiln, 'a-key-file')).toBe('AKEY_FILE')
  expect(nearestName(kiln, 'a-key')).toBe('A_KEY')
  expect(nearestName(kiln, 'A_KEY_FLIE')).toBe('A_KEY_FILE')
})

test('no variable that CI systems, shells and frameworks set is taken for a slip', () => {
  expect(foreign.length).toBeGreaterThan(250)
  expect(foreign.filter((name) => nearestName(contract, name) !== undefined)).toEqual([])
})
