import { CAUSES } from '../../src/core/network/causes.ts'

type Schema = Readonly<Record<string, unknown>>

const object = (
  required: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema => ({
  type: 'object',
  properties: { ...required, ...optional },
  required: Object.keys(required),
  additionalProperties: false,
})
const list = (items: Schema): Schema => ({ type: 'array', items })
const text: Schema = { type: 'string', minLength: 1 }
const stamp: Schema = { type: ['string', 'null'], description: 'BUILD_STAMP; null without one.' }
const milliseconds: Schema = { type: 'number', minimum: 0 }
const cause: Schema = {
  enum: Object.keys(CAUSES),
  description: 'platformctl health explain CODE says what it means.',
}

const reportOf = (service: Schema) =>
  object({
    service,
    state: { enum: ['ok', 'degraded', 'failing'] },
    build: stamp,
    startedAt: { type: 'string' },
    time: { type: 'string' },
    latencyMs: milliseconds,
    probes: {
      type: 'object',
      additionalProperties: object(
        {
          state: { enum: ['ok', 'degraded', 'failing', 'skipped'] },
          checked: { type: 'boolean', description: 'False: nothing live was tried.' },
        },
        { reason: text, latencyMs: milliseconds },
      ),
    },
  })

const healthOf = (service: Schema) => ({
  ...object(
    {
      service,
      state: { enum: ['ok', 'degraded', 'failing', 'unreached'] },
      because: {
        ...list(service),
        description: 'The services at the origin of it; empty: its trouble is its own.',
      },
      url: { type: 'string', format: 'uri' },
      phases: object(
        { total: milliseconds },
        { dns: milliseconds, tcp: milliseconds, tls: milliseconds, firstByte: milliseconds },
      ),
      reached: { type: 'boolean' },
    },
    {
      certificate: object({
        validTo: { type: 'string', format: 'date-time' },
        daysLeft: { type: 'integer' },
      }),
      report: reportOf(service),
      foreign: { const: true, description: 'Another program answered, in a format of its own.' },
      cause,
      reason: text,
      fix: text,
    },
  ),
  if: { properties: { reached: { const: true } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  then: { required: ['report'], not: { required: ['cause'] } },
  else: { required: ['cause', 'reason', 'fix'], not: { required: ['report'] } },
})

/** The document that `platformctl health --format json` writes, as a JSON Schema (2020-12). */
export function healthDocumentSchema(services: readonly string[]): Schema {
  const service: Schema = {
    ...text,
    examples: services,
    description: 'A service of the platform, or the name that --url gave another program.',
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'What platformctl health --format json writes',
    description:
      'With --watch: one such document a line, one line a round. Times of phases are milliseconds.',
    ...object({
      version: { const: 1 },
      passed: { type: 'boolean' },
      outcome: { enum: ['passed', 'failed', 'unreached'] },
      sentence: { ...text, description: 'All of it in one line.' },
      time: { type: 'string', format: 'date-time' },
      services: list(healthOf(service)),
      rootCauses: list(
        object(
          {
            services: list(service),
            state: { enum: ['degraded', 'failing', 'unreached'] },
            reason: text,
          },
          { probe: text, cause, fix: text },
        ),
      ),
      builds: { type: 'object', propertyNames: service, additionalProperties: stamp },
      skew: { type: 'boolean' },
      warnings: list(text),
    }),
  }
}
