import fc from 'fast-check'
import type { Requirement, RuleDefinition } from '../../src/core/env/definition.ts'
import type { Kind } from '../../src/core/env/kinds.ts'
import type { GroupInput, PlatformDefinition, VariableInput } from '../../src/platform/definition.ts'

/** A value that each kind takes, and one that it does not; undefined where it takes any line. */
export const SAMPLES: Readonly<Record<string, readonly [sound: string, malformed: string | undefined]>> = {
  text: ['a text', 'a\u0000b'],
  secret: ['sound', 'a\u0007b'],
  url: ['https://a.example', 'a.example'],
  integer: ['7', '7.5'],
  number: ['7.5', 'seven'],
  boolean: ['true', 'maybe'],
  enum: ['eu', 'mars'],
  duration: ['5m', '5'],
  bytes: ['10MB', '10 potatoes'],
  email: ['a@b.example', 'a'],
  host: ['db.internal', 'http://db'],
  port: ['443', '443443'],
  list: ['a,b', ','],
  json: ['{}', '{'],
  urls: ['https://a.example,https://b.example', 'https://a.example,b'],
  emails: ['a@b.example', 'a@b.example,c'],
  'postgres-url': ['postgres://a@b.example/c', 'postgres//b/c'],
  pem: ['-----BEGIN A-----\\nMIIB\\n-----END A-----', '-----BEGIN A-----'],
}

const KINDS = Object.keys(SAMPLES) as Kind[]
/** Kinds that are secret whatever the variable says. */
const HIDDEN: readonly string[] = ['secret', 'pem', 'postgres-url']
const NAMES = ['ALPHA_A', 'ALPHA_B', 'ALPHA_C', 'BETA_A', 'BETA_B', 'BETA_C', 'GAMMA_A', 'GAMMA_B']
const GROUPS = ['alpha', 'beta', 'gamma'] as const

/** Mostly not required. */
const requirement: fc.Arbitrary<Requirement | undefined> = fc.oneof(
  { weight: 5, arbitrary: fc.constant(undefined) },
  { weight: 3, arbitrary: fc.constantFrom<Requirement>(true, 'production') },
  { weight: 2, arbitrary: fc.constantFrom(...NAMES, ...GROUPS).map((when) => ({ when })) },
)
const names = (required: Requirement | undefined) =>
  typeof required === 'object' ? required.when : String(required)

const variable: fc.Arbitrary<VariableInput & { readonly kind: Kind }> = fc
  .record({
    kind: fc.constantFrom(...KINDS),
    adjusts: fc.boolean(),
    withDefault: fc.boolean(),
    secret: fc.boolean(),
    required: requirement,
    lenient: fc.boolean(),
  })
  .map(({ kind, adjusts, withDefault, secret, required, lenient }) => ({
    kind,
    ...(required !== undefined && !(required === true && withDefault) && { required }),
    ...(lenient && { malformed: 'warn' as const }),
    ...(kind === 'enum' && { of: ['eu', 'us'] }),
    ...(adjusts && { adjusts }),
    ...(withDefault && !HIDDEN.includes(kind) && { default: SAMPLES[kind]?.[0] ?? '' }),
    ...(secret && !HIDDEN.includes(kind) && !withDefault && { secret }),
  }))

const several = (least: number) =>
  fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: least, maxLength: 3 })

/** Names on two sides, none on both. */
const sides = fc
  .tuple(several(1), several(1))
  .map(([left, right]) => [left, right.filter((name) => !left.includes(name))] as const)
  .filter(([, right]) => right.length > 0)

const rule: fc.Arbitrary<RuleDefinition> = fc.oneof(
  several(2).map((allOrNone) => ({ allOrNone })),
  fc
    .tuple(sides, fc.constantFrom('any' as const, 'all' as const))
    .map(([[requires, when], match]) => ({ requires, when, match })),
  sides.map(([atLeastOne, when]) => ({ atLeastOne, when })),
  several(2).map((exclusive) => ({ exclusive })),
  fc.constantFrom(...NAMES).map((forbidden) => ({ forbidden, value: /\*/ })),
)

/** A sound definition of three groups with eight variables of random kinds, and rules across them. */
export const randomDefinition: fc.Arbitrary<
  PlatformDefinition & { readonly groups: Readonly<Record<string, GroupInput>> }
> = fc
  .record({
    variables: fc.tuple(...NAMES.map(() => variable)),
    rules: fc.tuple(...GROUPS.map(() => fc.array(rule, { maxLength: 3 }))),
    always: fc.tuple(...GROUPS.map(() => fc.integer({ max: 3, min: 0 }))),
    required: fc.tuple(...GROUPS.map(() => requirement)),
  })
  .map(({ variables, rules, always, required }) => ({
    preset: 'base' as const,
    services: { web: {} },
    groups: Object.fromEntries(
      GROUPS.map((group, index) => {
        const ours = NAMES.flatMap((name, at): [string, VariableInput][] => {
          const { required: when, ...of } = variables[at] ?? { kind: 'text' as const }
          if (!name.startsWith(group.toUpperCase())) return []
          return [[name, when === undefined || names(when) === name ? of : { ...of, required: when }]]
        })
        const own = [group, ...ours.map(([name]) => name)]
        const when = ours.every(([, of]) => of.adjusts) ? undefined : required[index]
        return [
          group,
          {
            unlocks: group,
            absent: `no ${group}`,
            ...(always[index] === 0 && { always: true }),
            ...(always[index] !== 0 &&
              when !== undefined &&
              !own.includes(names(when)) && { required: when }),
            variables: Object.fromEntries(ours),
            rules: consistent(
              rules[index] ?? [],
              ours.flatMap(([name, of]) => (of.required === true ? [name] : [])),
            ),
          },
        ]
      }),
    ),
  }))

/** Without those that no environment could keep. */
function consistent(
  rules: readonly RuleDefinition[],
  required: readonly string[],
): readonly RuleDefinition[] {
  const together = [required, ...rules.flatMap((one) => ('allOrNone' in one ? [one.allOrNone] : []))]
  return rules.filter(
    (one) =>
      !(
        'exclusive' in one &&
        together.some((all) => one.exclusive.filter((name) => all.includes(name)).length > 1)
      ),
  )
}

/** How a variable stands in an environment. */
export type Standing = 'unset' | 'blank' | 'sound' | 'malformed' | 'starred'

export const randomStandings: fc.Arbitrary<Readonly<Record<string, Standing>>> = fc
  .tuple(
    ...NAMES.map(() =>
      fc.constantFrom<Standing>('unset', 'unset', 'blank', 'sound', 'sound', 'sound', 'malformed', 'starred'),
    ),
  )
  .map((standings) => Object.fromEntries(NAMES.map((name, index) => [name, standings[index] ?? 'unset'])))
