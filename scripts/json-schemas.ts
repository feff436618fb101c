import { DOCUMENTS } from '../src/cli/documents/documents.ts'
import { jsonSchemaOf, reportSchema } from '../src/cli/documents/environment.ts'
import type { ResolvedPlatform } from '../src/core/platform.ts'
import { openapiDocument } from '../src/daemon/routes/openapi.ts'
import { routesOf } from '../src/daemon/routes.ts'
import { healthDocumentSchema } from './reference/health-schema.ts'

type Schema = Readonly<Record<string, unknown>>

/** The schema file of each command that has `--format json`, by command: without folder and ending. */
export const SCHEMA_OF: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.keys(DOCUMENTS).map((command) => [command, command.replaceAll(' ', '-')])),
  preflight: 'report',
  'env check': 'report',
  health: 'health',
}

/** The published JSON Schemas (2020-12) of commands, by the names of their files. */
export function jsonSchemas(platform: ResolvedPlatform): Readonly<Record<string, Schema>> {
  return {
    ...Object.fromEntries(
      Object.entries(DOCUMENTS).map(([command, schema]) => [
        command.replaceAll(' ', '-'),
        jsonSchemaOf(`What platformctl ${command} --format json writes`, schema),
      ]),
    ),
    report: reportSchema(platform.contract),
    health: healthDocumentSchema(platform.contract.services),
  }
}

/** The bodies of the daemon's requests and answers, each under `$defs`; /openapi.json says which is whose. */
export async function httpSchema(platform: ResolvedPlatform): Promise<Schema> {
  const document = await openapiDocument(platform, routesOf(platform), () => 'http://localhost')
  const { components } = document as unknown as {
    readonly components: { readonly schemas: Schema }
  }
  const text = JSON.stringify(components.schemas).replaceAll('#/components/schemas/', '#/$defs/')
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'JSON bodies of the daemon’s requests and answers',
    $defs: JSON.parse(text) as Schema,
  }
}
