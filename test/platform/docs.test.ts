import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { InsightsColumn, InsightsSection } from '../../src/core/analytics/insights-definition.ts'
import { BRAND_FIELDS, DEFINITION_FIELDS, SECURITY_FIELDS } from '../../src/platform/check/check.ts'
import { GROUP_FIELDS } from '../../src/platform/check/groups.ts'
import { COLUMN_FIELDS, INSIGHTS_FIELDS, SECTION_FIELDS } from '../../src/platform/check/insights.ts'
import { COURSE_FIELDS, HEARTBEAT_FIELDS, TEMPLATE_FIELDS } from '../../src/platform/check/mails.ts'
import { PROBE_FIELDS, SERVICE_FIELDS } from '../../src/platform/check/services.ts'
import { VARIABLE_FIELDS } from '../../src/platform/check/variables.ts'
import type {
  CourseInput,
  GroupInput,
  HeartbeatInput,
  PlatformDefinition,
  ProbeInput,
  SecurityInput,
  ServiceInput,
  TemplateInput,
  VariableInput,
} from '../../src/platform/definition.ts'

const page = readFileSync(new URL('../../docs/definition.md', import.meta.url), 'utf8')

/** The first column of the table below a heading. */
function fieldsUnder(heading: string): string[] {
  const [, section = ''] = page.split(`\n${heading}\n`)
  const [table = ''] = section.split(/\n##+ /)
  return [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name)
}

/** Every field of a type; a missing or surplus one does not compile. */
const every =
  <Type>() =>
  <const Names extends readonly (keyof Type)[]>(
    names: Names & ([Exclude<keyof Type, Names[number]>] extends [never] ? unknown : never),
  ): readonly unknown[] =>
    names

test.each<[heading: string, accepted: readonly unknown[], typed: readonly unknown[]]>([
  ['## The definition', DEFINITION_FIELDS, every<PlatformDefinition>()(DEFINITION_FIELDS)],
  ['### Brand', BRAND_FIELDS, every<NonNullable<PlatformDefinition['brand']>>()(BRAND_FIELDS)],
  ['### Security', SECURITY_FIELDS, every<SecurityInput>()(SECURITY_FIELDS)],
  ['### Services', SERVICE_FIELDS, every<ServiceInput>()(SERVICE_FIELDS)],
  ['### Groups', GROUP_FIELDS, every<GroupInput>()(GROUP_FIELDS)],
  ['### Variables', VARIABLE_FIELDS, every<VariableInput>()(VARIABLE_FIELDS)],
  ['### Probes', PROBE_FIELDS, every<ProbeInput>()(PROBE_FIELDS)],
  ['### Templates', TEMPLATE_FIELDS, every<TemplateInput>()(TEMPLATE_FIELDS)],
  ['### Courses', COURSE_FIELDS, every<CourseInput>()(COURSE_FIELDS)],
  ['### Insights', INSIGHTS_FIELDS, every<NonNullable<PlatformDefinition['insights']>>()(INSIGHTS_FIELDS)],
  ['#### Sections', SECTION_FIELDS, every<InsightsSection>()(SECTION_FIELDS)],
  ['#### Columns', COLUMN_FIELDS, every<InsightsColumn>()(COLUMN_FIELDS)],
  ['### Heartbeats', HEARTBEAT_FIELDS, every<HeartbeatInput>()(HEARTBEAT_FIELDS)],
])('%s: the page, the checks and the types know the same fields', (heading, accepted, typed) => {
  expect(fieldsUnder(heading)).toEqual(accepted)
  expect(typed).toEqual(accepted)
})
