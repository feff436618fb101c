import { jsonSchemas, SCHEMA_OF } from '../../scripts/json-schemas.ts'
import { DOCUMENTS } from '../../src/cli/documents/documents.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { compiledSchema } from './schemas.ts'

let schemas: ReturnType<typeof jsonSchemas> | undefined

/** Published, and the same for every platform. */
const names = Object.keys(DOCUMENTS)

/**
 * Gives back what a command wrote, and throws if it is a JSON document that the command's published schema refuses.
 * Without `args` one of the schemas must accept it.
 */
export function withValidDocument(stdout: string, args?: readonly string[]): string {
  if (!stdout.startsWith('{\n  "version": 1,')) return stdout
  const document = JSON.parse(stdout) as Readonly<Record<string, unknown>>
  // Reports and health name what the platform has; their schemas have tests of their own.
  if (('groups' in document && 'findings' in document) || 'rootCauses' in document) return stdout
  const command = args && names.findLast((name) => `${args.join(' ')} `.startsWith(`${name} `))
  schemas ??= jsonSchemas(learning)
  const faults: string[] = []
  for (const name of command === undefined ? names : [command]) {
    const schema = schemas[SCHEMA_OF[name] ?? ''] ?? {}
    // Compiling is slow; most are of another kind at first sight.
    if (command === undefined && !mayBe(schema, document)) continue
    const found = compiledSchema(schema)(document)
    if (found.length === 0) return stdout
    faults.push(`${name}: ${found.join('; ')}`)
  }
  throw new Error(`a document that no published schema accepts:\n${faults.join('\n')}\n${stdout}`)
}

/** Whether one of the forms of a schema has all members of a document. */
function mayBe(schema: Form, document: object): boolean {
  const { anyOf = [schema] } = schema
  return anyOf.some(({ properties = {} }) => Object.keys(document).every((name) => name in properties))
}

interface Form {
  readonly properties?: object
  readonly anyOf?: readonly Form[]
}
