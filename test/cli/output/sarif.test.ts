import { expect, test } from 'vitest'
import { sarifText } from '../../../src/cli/output/annotations.ts'
import type { Finding } from '../../../src/core/finding.ts'
import type { LiveResult } from '../../../src/core/live/live.ts'

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

const runOf = (findings: readonly Finding[], live?: readonly LiveResult[]) =>
  (
    JSON.parse(sarifText(findings, '1.2.3', live)) as {
      runs: [{ tool: unknown; results: { partialFingerprints?: { primaryLocationLineHash: string } }[] }]
    }
  ).runs[0]

test('a finding is a result with its rule, level, sentences and place', () => {
  const { tool, results } = runOf([
    finding(),
    finding({ id: 'store-pair', severity: 'error', isPlaced: false }),
    finding({ id: 'group-absent', severity: 'notice' }),
  ])
  expect(tool).toEqual({
    driver: {
      name: 'platformctl',
      version: '1.2.3',
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
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: 'ops/my%20env' },
            region: { startLine: 3, startColumn: 7 },
          },
        },
      ],
    },
    { ruleId: 'store-pair', ruleIndex: 1, level: 'error', locations: [] },
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

test('a live check that is no finding is a result without a level', () => {
  const live = (state: 'passed' | 'skipped' | 'failed'): LiveResult =>
    ({
      target: 'store',
      check: 'name resolution',
      state,
      detail: 'one address',
      services: ['web'],
      variables: ['STORE_URL'],
      ...(state === 'failed' && { id: 'live-name' }),
    }) as LiveResult
  expect(runOf([], [live('passed'), live('skipped'), live('failed')]).results).toEqual([
    {
      ruleId: 'live/store/name-resolution',
      kind: 'pass',
      level: 'none',
      message: { text: 'store: name resolution passed: one address' },
    },
    {
      ruleId: 'live/store/name-resolution',
      kind: 'notApplicable',
      level: 'none',
      message: { text: 'store: name resolution skipped: one address' },
    },
  ])
})
