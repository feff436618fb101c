import type { Contract } from '../env/contract.ts'
import { LIVE_CHECKS, LIVE_STATES, liveTargetNames } from './live.ts'

type Schema = Readonly<Record<string, unknown>>

const text: Schema = { type: 'string', minLength: 1 }
const names: Schema = { type: 'array', items: text, uniqueItems: true }

const object = (
  required: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema => ({
  type: 'object',
  properties: { ...required, ...optional },
  required: Object.keys(required),
  additionalProperties: false,
})

const findingOf = (services: Schema) =>
  object(
    {
      id: {
        ...text,
        pattern: '^[a-z][a-z0-9-]*$',
        description: 'Stable; platformctl env explain ID says what it means.',
      },
      severity: { enum: ['error', 'warning', 'notice'] },
      services,
      group: {
        ...text,
        description: 'The group of variables concerned, `file`, or the target of a live check.',
      },
      present: { ...names, description: 'Variables that are set and concerned.' },
      missing: { ...names, description: 'Variables that are not set and would be needed.' },
      cause: { ...text, description: 'One sentence: what is wrong.' },
      fix: { ...text, description: 'One sentence: what to do about it.' },
    },
    {
      location: object({
        file: text,
        line: { type: 'integer', minimum: 1 },
        column: { type: 'integer', minimum: 1 },
      }),
      excerpt: { type: 'string', description: 'The line at `location` with every value masked.' },
    },
  )

const liveOf = (services: Schema, targets: readonly string[]) =>
  object(
    {
      target: { enum: targets },
      check: { enum: LIVE_CHECKS },
      state: { enum: LIVE_STATES, description: 'skipped: not tried, and `detail` says why.' },
      detail: { ...text, description: 'A predicate, such as "does not resolve".' },
      services,
      variables: names,
    },
    {
      id: { ...text, description: 'The id of the finding that it gave rise to.' },
      latencyMs: { type: 'number', minimum: 0 },
    },
  )

/** The document that `preflight --format json` and `env check --format json` write, as a JSON Schema (2020-12). */
export function reportSchema(contract: Contract): Schema {
  const services: Schema = { type: 'array', items: { enum: contract.services }, uniqueItems: true }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Report of platformctl preflight and platformctl env check',
    description: 'It never contains a variable’s value, part of it, or its length.',
    ...object(
      {
        version: { const: 1 },
        platform: object({
          name: text,
          definition: { type: ['string', 'null'], description: 'Its file; null: the default platform.' },
          fingerprint: { type: ['string', 'null'] },
        }),
        ok: { type: 'boolean', description: 'No finding is an error.' },
        services,
        groups: {
          type: 'array',
          items: object({
            name: { enum: contract.groups.map((group) => group.name) },
            state: { enum: ['absent', 'configured', 'half-configured'] },
            present: names,
            meaning: { ...text, description: 'What the group unlocks, or what its absence means.' },
          }),
        },
        findings: {
          type: 'array',
          items: findingOf(services),
          description: 'Errors first, then warnings, then notices.',
        },
      },
      {
        live: {
          type: 'array',
          items: liveOf(services, liveTargetNames(contract.services)),
          description: 'With --deep: every live check, also those skipped.',
        },
      },
    ),
  }
}
