import path from 'node:path'
import { expect, test } from 'vitest'
import packageJson from '../../../package.json' with { type: 'json' }
import { sarifText } from '../../../src/cli/output/annotations.ts'
import type { Finding } from '../../../src/core/finding.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { testContext } from '../../support/context.ts'

const finding = ({
  isPlaced = true,
  ...parts
}: Partial<Finding> & { readonly isPlaced?: boolean } = {}): Finding => ({
  id: 'malformed-value',
  severity: 'warning',
  services: ['web'],
  group: 'site',
  present: ['A_URL'],
  missing: [],
  cause: 'A_URL is malformed.',
  fix: 'Correct it.',
  ...(isPlaced && { location: { file: 'ops\\my env', line: 3, column: 7 } }),
  ...parts,
})

const { context } = testContext()

const runOf = (findings: readonly Finding[], { on = context, files = [] as string[] } = {}) =>
  (
    JSON.parse(sarifText(on, findings, files)) as {
      runs: [{ tool: unknown; results: { partialFingerprints?: { primaryLocationLineHash: string } }[] }]
    }
  ).runs[0]

const locations = (uri: string, startLine = 1, startColumn = 1) => [
  { physicalLocation: { artifactLocation: { uri }, region: { startLine, startColumn } } },
]

test('a finding is a result with its rule, level, sentences and place', () => {
  const { tool, results } = runOf([
    finding(),
    finding({ id: 'store-pair', severity: 'error', isPlaced: false }),
    finding({ id: 'group-absent', severity: 'notice' }),
  ])
  expect(tool).toEqual({
    driver: {
      name: 'platformctl',
      version: packageJson.version,
      rules: [
        ['malformed-value', 'warning'],
        ['store-pair', 'error'],
        ['group-absent', 'note'],
      ].map(([id, level]) => ({
        id,
        shortDescription: { text: 'A_URL is malformed.' },
        help: { text: `platformctl env explain ${id}` },
        defaultConfiguration: { level },
      })),
    },
  })
  expect(results).toMatchObject([
    {
      ruleId: 'malformed-value',
      ruleIndex: 0,
      level: 'warning',
      message: { text: 'A_URL is malformed. Correct it.' },
      locations: locations('ops/my%20env', 3, 7),
    },
    { ruleId: 'store-pair', ruleIndex: 1, level: 'error', locations: locations('package.json') },
    { ruleId: 'group-absent', ruleIndex: 2, level: 'note' },
  ])
})

test('a finding is known again by its id, file and names, wherever its line is, and equal ones are counted', () => {
  const of = (...findings: Finding[]) =>
    runOf(findings).results.map((one) => one.partialFingerprints?.primaryLocationLineHash ?? '')
  const [first = ''] = of(finding())
  expect(first).toMatch(/^[0-9a-f]{16}:1$/)
  const hash = first.slice(0, -2)
  expect(
    of(
      finding({ location: { file: 'ops/my env', line: 9, column: 1 }, cause: 'Other.', fix: 'Other.' }),
      finding(),
      finding(),
    ),
  ).toEqual([`${hash}:1`, `${hash}:2`, `${hash}:3`])
  expect(of(finding({ location: { file: 'ops\\my env', line: 3, column: 7 } })), 'on Windows').toEqual([
    first,
  ])
  // Each alone, as a count would tell equal ones apart.
  const others = [
    finding(),
    finding({ id: 'weak-secret' }),
    finding({ present: ['B_URL'] }),
    finding({ missing: ['B_URL'] }),
    finding({ location: { file: 'other', line: 3, column: 7 } }),
    finding({ isPlaced: false }),
  ].flatMap((one) => of(one))
  expect(new Set(others).size).toBe(others.length)
})

test('a finding without a place is at the first env file, else at the definition, as code scanning refuses one that is nowhere', () => {
  const at = (file: string) => path.join(context.cwd, ...file.split('/'))
  const definition = { file: at('ops/platform.config.ts'), fingerprint: String, lessons: String, assets: [] }
  const on = testContext({ platform: { ...learning, definition } }).context
  const unplaced = finding({ isPlaced: false })
  for (const [given, uri] of [
    [{ on, files: ['ops/my env', '.env'] }, 'ops/my%20env'],
    [{ on, files: [at('ops/.env')] }, 'ops/.env'],
    [{ on }, 'ops/platform.config.ts'],
    [{}, 'package.json'],
  ] as const)
    expect(runOf([unplaced], { ...given, files: [...(given.files ?? [])] }).results).toMatchObject([
      { locations: locations(uri) },
    ])
  const own = finding({ location: { file: at('a/.env'), line: 2, column: 1 } })
  expect(runOf([own]).results).toMatchObject([{ locations: locations('a/.env', 2) }])
})
