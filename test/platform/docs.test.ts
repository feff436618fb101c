import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { brand, definition, security } from '../../src/platform/check/check.ts'
import { group } from '../../src/platform/check/groups.ts'
import { column, insights, section } from '../../src/platform/check/insights.ts'
import { course, heartbeat, template } from '../../src/platform/check/mails.ts'
import { probe, service } from '../../src/platform/check/services.ts'
import { variable } from '../../src/platform/check/variables.ts'

const page = readFileSync(new URL('../../docs/reference/definition.md', import.meta.url), 'utf8')

/** The first column of the table below a heading. */
function fieldsUnder(heading: string): string[] {
  const [, section = ''] = page.split(`\n${heading}\n`)
  const [table = ''] = section.split(/\n##+ /)
  return [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name)
}

test.each<[heading: string, checked: { readonly known: readonly string[] }]>([
  ['## The definition', definition],
  ['### Brand', brand],
  ['### Security', security],
  ['### Services', service],
  ['### Groups', group],
  ['### Variables', variable],
  ['### Probes', probe],
  ['### Templates', template],
  ['### Courses', course],
  ['### Insights', insights],
  ['#### Sections', section],
  ['#### Columns', column],
  ['### Heartbeats', heartbeat],
])('%s: the page has the fields that the checks know, in their order', (heading, { known }) => {
  expect(fieldsUnder(heading)).toEqual(known)
})
