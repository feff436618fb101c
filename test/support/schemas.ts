import { readFileSync } from 'node:fs'
import { Ajv, type ErrorObject } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { validateXML } from 'xmllint-wasm'

const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url), 'utf8')

const told = (errors: readonly ErrorObject[] | null | undefined) =>
  (errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)

/** Compiled once: the schema is long. */
let sarif: ReturnType<Ajv['compile']> | undefined

function sarifSchema(): ReturnType<Ajv['compile']> {
  // Draft 4, which differs from draft 7 in the name of the identifier only, as far as this schema uses it.
  const {
    $schema: _draft,
    id: _id,
    ...schema
  } = JSON.parse(fixture('sarif-2.1.0.schema.json')) as Record<string, unknown>
  const ajv = new Ajv({ strict: false, allErrors: true, unicodeRegExp: false })
  // The package is CommonJS: its function is the default of the default.
  ;(addFormats as unknown as (one: Ajv) => void)(ajv)
  return ajv.compile(schema)
}

/** Validates a document against the published schema of SARIF 2.1.0 (OASIS); gives no errors for a valid one. */
export function sarifFaults(text: string): string[] {
  sarif ??= sarifSchema()
  sarif(JSON.parse(text))
  return told(sarif.errors)
}

/** Validates a document against the schema of JUnit results that Jenkins publishes. */
export async function junitFaults(text: string): Promise<string[]> {
  const { errors } = await validateXML({
    xml: [{ fileName: 'report.xml', contents: text }],
    schema: [{ fileName: 'junit.xsd', contents: fixture('junit.xsd') }],
  })
  return errors.map(({ message }) => message)
}

type Validator = (document: unknown) => string[]
/** One for all: each compiles the schema of schemas anew. */
let ajv: Ajv2020 | undefined
const compiled = new WeakMap<object, Validator>()

/** Compiles a JSON Schema of ours (2020-12) into a function that lists a document's faults. */
export function compiledSchema(schema: Readonly<Record<string, unknown>>): Validator {
  const known = compiled.get(schema)
  if (known) return known
  if (ajv === undefined) {
    ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, addUsedSchema: false })
    ;(addFormats as unknown as (one: Ajv2020) => void)(ajv)
  }
  const validate = ajv.compile(schema)
  const faultsOf: Validator = (document) => {
    validate(document)
    return told(validate.errors)
  }
  compiled.set(schema, faultsOf)
  return faultsOf
}

/** A document's faults under a JSON Schema of ours (2020-12). */
export function schemaFaults(schema: Readonly<Record<string, unknown>>, document: unknown): string[] {
  return compiledSchema(schema)(document)
}
