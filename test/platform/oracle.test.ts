import { inspect } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { githubText, sarifText } from '../../src/cli/output/annotations.ts'
import { junitText } from '../../src/cli/output/junit.ts'
import { parseValue } from '../../src/core/env/kinds.ts'
import { environmentSchema, exampleFile } from '../../src/core/env/schema.ts'
import { evaluateGroups } from '../../src/core/env/settings.ts'
import { validate } from '../../src/core/env/validate.ts'
import { checkedDefinition, contractOf } from '../../src/platform/contract.ts'
import type { GroupInput } from '../../src/platform/definition.ts'
import { environmentTypes, guaranteed } from '../../src/platform/env-types.ts'
import { environmentOf, readPlatformEnv } from '../../src/platform/read-env.ts'
import { testContext } from '../support/context.ts'
import { schemaFaults } from '../support/schemas.ts'
import { randomDefinition, randomStandings, SAMPLES, type Standing } from './random-definition.ts'

const CANARY = 'canary8b1f'

function sampleOf(kind: string, secret: boolean, standing: Standing): string | undefined {
  const [sound, malformed] = SAMPLES[kind] ?? ['', undefined]
  switch (standing) {
    case 'unset':
      return undefined
    case 'blank':
      return ' \t'
    case 'sound':
      return secret && (kind === 'text' || kind === 'secret') ? CANARY : sound
    case 'malformed':
      return secret ? `${CANARY}${malformed}` : malformed
    case 'starred':
      return kind === 'text' || kind === 'secret' ? `${secret ? CANARY : ''}*` : sound
  }
}

/** The rules of CONTRACT §2 said again, as sentences in code over sets, by another road than `rule.ts`. */
function isBroken(
  rule: NonNullable<GroupInput['rules']>[number],
  set: ReadonlySet<string>,
  raw: ReadonlyMap<string, string>,
): boolean {
  const count = (names: readonly string[]) => [...new Set(names)].filter((name) => set.has(name)).length
  if ('allOrNone' in rule) return ![0, rule.allOrNone.length].includes(count(rule.allOrNone))
  if ('exclusive' in rule) return count(rule.exclusive) >= 2
  if ('requires' in rule) {
    const wanted = rule.match === 'all' ? count(rule.when) === rule.when.length : count(rule.when) >= 1
    return wanted && count(rule.requires) < rule.requires.length
  }
  if ('atLeastOne' in rule) return count(rule.when) === rule.when.length && count(rule.atLeastOne) === 0
  return (raw.get(rule.forbidden) ?? '').includes('*')
}

/** The sentences of CONTRACT §14.2 about one definition and one environment. */
function required(groups: Readonly<Record<string, GroupInput>>, usable: ReadonlySet<string>, stage: string) {
  const switches = (group: GroupInput) => {
    const entries = Object.entries(group.variables)
    const optional = entries.every(([, of]) => of.adjusts === true || of.default !== undefined)
    return entries.flatMap(([name, of]) =>
      of.adjusts === true || (of.default !== undefined && !optional) ? [] : [name],
    )
  }
  const isOn = (group: GroupInput) =>
    group.always === true || switches(group).some((name) => usable.has(name))
  const applies = (when: GroupInput['required']) => {
    if (typeof when !== 'object') return when === true || (when === 'production' && stage === 'production')
    const group = groups[when.when]
    return group === undefined ? usable.has(when.when) : isOn(group)
  }
  const missing = (group: GroupInput) => [
    ...(applies(group.required) && !switches(group).some((name) => usable.has(name))
      ? [switches(group)]
      : []),
    ...Object.entries(group.variables).flatMap(([name, of]) =>
      applies(of.required) && !usable.has(name) ? [[name]] : [],
    ),
  ]
  return { isOn, missing }
}

const stages = fc.constantFrom('', 'production', 'staging')
const cases = fc.tuple(randomDefinition, randomStandings, stages)

test('random definitions with random environments agree with the oracle, and no secret is in what they give', () => {
  let run = 0
  fc.assert(
    fc.property(cases, ([definition, standings, stage]) => {
      run += 1
      const contract = contractOf(checkedDefinition(definition))
      const variables = Object.values(definition.groups).flatMap(({ variables: of }) => Object.entries(of))
      const env = Object.fromEntries([
        ['DEPLOY_ENVIRONMENT', stage],
        ...variables.flatMap(([name, { kind = 'text' }]) => {
          const secret = contract.find(name)?.secret === true
          const value = sampleOf(kind, secret, standings[name] ?? 'unset')
          return value === undefined ? [] : [[name, value] as const]
        }),
      ])
      const raw = new Map(Object.entries(env).filter(([, value]) => value.trim() !== ''))
      const usable = new Set(
        variables.flatMap(([name, { kind = 'text', of }]) => {
          const value = raw.get(name)
          return value !== undefined && parseValue({ kind, ...(of && { of }) }, value.trim()).ok ? [name] : []
        }),
      )
      const report = validate(contract, env)
      const errors = report.findings.filter(({ severity }) => severity === 'error')
      const { isOn, missing } = required(definition.groups, usable, stage)
      for (const [name, group] of Object.entries(definition.groups)) {
        const broken = (group.rules ?? []).filter((rule) => isBroken(rule, usable, raw))
        const own = Object.keys(group.variables).filter((variable) => raw.has(variable))
        const malformed = own.filter((variable) => !usable.has(variable))
        const strict = malformed.filter((variable) => group.variables[variable]?.malformed !== 'warn')
        const mine = errors.filter((error) => error.group === name)
        const of = (id: string) => mine.filter((error) => error.id === id)
        const unsaid = missing(group).filter((names) => !names.some((one) => strict.includes(one)))
        expect(of('required-missing').map((error) => error.missing)).toEqual(unsaid)
        expect(of('malformed-value').flatMap((error) => error.present)).toEqual(strict)
        expect(mine).toHaveLength(broken.length + unsaid.length + strict.length)
        const half = broken.length > 0 || strict.length > 0 || (missing(group).length > 0 && own.length > 0)
        const state = half ? 'half-configured' : isOn(group) ? 'configured' : 'absent'
        expect(report.groups.find((one) => one.name === name)?.state).toBe(state)

        const read = environmentOf(contract, env)[name]
        expect(read === undefined).toBe(state !== 'configured' && group.always !== true)
        const known = contract.group(name)
        const sure = known && read ? guaranteed(known) : new Set<string>()
        for (const variable of sure)
          if (state === 'configured' && missing(group).length === 0)
            expect(read?.[variable], variable).toBeDefined()
        for (const [variable, { default: unset }] of Object.entries(group.variables)) {
          const isThere = usable.has(variable) || unset !== undefined
          if (read && !isThere && sure.has(variable))
            expect(() => read[variable]).toThrow(`${variable} is required`)
          else if (read) expect(read[variable] !== undefined).toBe(isThere)
        }
      }
      expect(JSON.stringify([report, environmentOf(contract, env)])).not.toContain(CANARY)
      if (run % 25 === 0) {
        // A JSON Schema cannot see that a value is malformed.
        const wellFormed = raw.size === usable.size + (stage === '' ? 0 : 1)
        if (wellFormed) {
          const faults = schemaFaults(environmentSchema(contract), env)
          expect(faults.length === 0).toBe(errors.length === 0)
        }
        const outputs = [
          githubText(report.findings, undefined),
          sarifText(testContext().context, report.findings),
          junitText('preflight', report.findings, true, undefined),
          exampleFile(contract),
          environmentTypes(contract),
          JSON.stringify(environmentSchema(contract)),
        ]
        for (const output of outputs) expect(output).not.toContain(CANARY)
      }
    }),
    // The gate asks for 10,000.
    { numRuns: Number(process.env.ORACLE_RUNS ?? 120) },
  )
}, 600_000)

test('the guaranteed variables are exactly those that the rules guarantee in every possible environment', () => {
  fc.assert(
    fc.property(randomDefinition, (definition) => {
      const contract = contractOf(checkedDefinition(definition))
      const names = contract.variables.filter(({ name }) => /^(?:ALPHA|BETA|GAMMA)_/.test(name))
      const groups = contract.groups
        .filter(({ name }) => ['alpha', 'beta', 'gamma'].includes(name))
        .map((group) => ({ group, always: new Set(group.variables.map(({ name }) => name)) }))
      for (let subset = 0; subset < 2 ** names.length; subset += 1) {
        const set = names.filter((_, bit) => subset & (1 << bit))
        const env = Object.fromEntries(set.map(({ name, kind }) => [name, SAMPLES[kind]?.[0] ?? '']))
        const { broken } = evaluateGroups(contract, env)
        const read = environmentOf(contract, env)
        // What an environment with errors lacks says nothing.
        for (const { group, always } of groups)
          if (read[group.name] && broken.every(({ rule }) => rule.group !== group.name))
            for (const name of always) if (env[name] === undefined) always.delete(name)
      }
      for (const { group, always } of groups)
        for (const name of guaranteed(group)) expect(always).toContain(name)
    }),
    { numRuns: 16 },
  )
}, 60_000)

test('readPlatformEnv parses each kind, hides secrets and knows the definition by its faults', () => {
  const platform = {
    preset: 'base',
    services: { web: {} },
    groups: {
      kiln: {
        unlocks: 'a',
        absent: 'b',
        variables: {
          KILN_KEY: { kind: 'secret' },
          KILN_WAIT: { kind: 'duration', default: '5m' },
          KILN_DAYS: { kind: 'list' },
        },
      },
    },
  } as const
  const { kiln, store } = readPlatformEnv(platform, { KILN_KEY: ' canary ', KILN_DAYS: 'mon, tue' })
  expect(kiln).toMatchObject({ KILN_WAIT: 300_000, KILN_DAYS: ['mon', 'tue'] })
  expect(kiln?.KILN_KEY?.reveal()).toBe('canary')
  expect(`${kiln?.KILN_KEY}${JSON.stringify(kiln)}${inspect(kiln, { depth: 9 })}`).not.toContain('canary')
  expect(store).toBeUndefined()
  expect(readPlatformEnv(platform, { KILN_WAIT: '1m' }).kiln).toBeUndefined()
  expect(() => readPlatformEnv({ name: '' }, {})).toThrow(
    'the platform definition: name: This is empty, not text.',
  )
})
