import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { reportSchema } from '../../src/cli/documents/environment.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { spoiled } from '../support/spoiled.ts'

const isValid = new Ajv2020({ strict: true }).compile(reportSchema(learning.contract))

const REPORT = {
  version: 1,
  platform: { name: 'Learning', definition: null, fingerprint: null },
  ok: false,
  services: ['web', 'api'],
  groups: [{ name: 'mail', state: 'half-configured', present: ['MAILER_API_KEY'], meaning: 'no mail' }],
  findings: [
    {
      id: 'mail-2-without-sender',
      severity: 'error',
      services: ['web'],
      group: 'mail',
      present: ['MAILER_API_KEY'],
      missing: ['MAILER_FROM'],
      cause: 'There is no sender.',
      fix: 'Set MAILER_FROM.',
      location: { file: '.env', line: 1, column: 1 },
      excerpt: '',
    },
  ],
  live: [
    {
      target: 'api',
      check: 'health',
      state: 'failed',
      detail: 'is failing',
      services: ['web'],
      variables: ['API_URL'],
      id: 'live-unhealthy',
      latencyMs: 0,
    },
  ],
}
const FINDING = 'findings/0'
const LIVE = 'live/0'

test.each<[at: string, values: readonly unknown[]]>([
  ['ok', [true, false]],
  ['services', [[]]],
  ['groups', [[]]],
  ['groups/0/state', ['absent', 'configured', 'half-configured']],
  ['groups/0/present', [[]]],
  ['findings', [[]]],
  [`${FINDING}/severity`, ['error', 'warning', 'notice']],
  [`${FINDING}/location`, [undefined]],
  [`${FINDING}/excerpt`, [undefined, 'A=•••']],
  [`${FINDING}/missing`, [[]]],
  ['live', [undefined, []]],
  [`${LIVE}/target`, ['datastore', 'sender', 'agent', 'a probe of the definition']],
  [`${LIVE}/state`, ['passed', 'warning', 'failed', 'skipped']],
  [`${LIVE}/check`, ['configuration', 'domain', 'SPF', 'migrations', 'published keys']],
  [`${LIVE}/latencyMs`, [undefined, 0.1, 12]],
  [`${LIVE}/id`, [undefined]],
])('the schema of the report takes every %s that a report may have', (at, values) => {
  for (const value of values) expect(isValid(spoiled(REPORT, at, value)), JSON.stringify(value)).toBe(true)
})

test.each<[at: string, values: readonly unknown[]]>([
  ['version', [undefined, 2, '1']],
  ['ok', [undefined, 'yes']],
  ['surplus', [1]],
  ['services', [undefined, ['web', 'web'], ['nobody'], 'web']],
  ['groups', [undefined, {}]],
  ['groups/0/name', [undefined, 'nobodys']],
  ['groups/0/state', [undefined, 'broken']],
  ['groups/0/present', [undefined, ['A', 'A'], [''], [1]]],
  ['groups/0/meaning', [undefined, '']],
  ['groups/0/surplus', [1]],
  ['findings', [undefined, {}]],
  [`${FINDING}/id`, [undefined, '', 'Mail', '1-a', 'a b', 'a_b']],
  [`${FINDING}/severity`, [undefined, 'fatal']],
  [`${FINDING}/services`, [undefined, ['web', 'web'], ['nobody']]],
  [`${FINDING}/group`, [undefined, '']],
  [`${FINDING}/present`, [undefined, ['A', 'A']]],
  [`${FINDING}/missing`, [undefined, ['']]],
  [`${FINDING}/cause`, [undefined, '']],
  [`${FINDING}/fix`, [undefined, '']],
  [`${FINDING}/surplus`, [1]],
  [`${FINDING}/excerpt`, [1]],
  [`${FINDING}/location/file`, [undefined, '']],
  [`${FINDING}/location/line`, [undefined, 0, 1.5]],
  [`${FINDING}/location/column`, [undefined, 0, 1.5]],
  [`${FINDING}/location/surplus`, [1]],
  ['live', [{}]],
  [`${LIVE}/target`, ['', 7]],
  [`${LIVE}/check`, [undefined, 'luck']],
  [`${LIVE}/state`, [undefined, 'green']],
  [`${LIVE}/detail`, [undefined, '']],
  [`${LIVE}/services`, [undefined, ['nobody']]],
  [`${LIVE}/variables`, [undefined, ['A', 'A']]],
  [`${LIVE}/id`, ['']],
  [`${LIVE}/latencyMs`, [-0.1, '1']],
  // It may name a host, and no report does.
  [`${LIVE}/place`, ['api.example']],
])('the schema of the report refuses a wrong %s', (at, values) => {
  for (const value of values) expect(isValid(spoiled(REPORT, at, value)), JSON.stringify(value)).toBe(false)
})

test('the schema says of itself what it describes', () => {
  const { $schema, title, description } = reportSchema(learning.contract)
  expect($schema).toBe('https://json-schema.org/draft/2020-12/schema')
  expect(title).toMatch(/platformctl preflight/)
  expect(description).toMatch(/never contains a variable’s value/)
})
