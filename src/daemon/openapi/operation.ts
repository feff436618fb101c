import type * as z from 'zod'
import type { ErrorCode } from '../../core/errors.ts'
import type { ROUTES, WebRoute } from '../../core/routes.ts'

/** The errors of a body that must be JSON. */
export const JSON_BODY: readonly ErrorCode[] = ['bad_request', 'payload_too_large', 'unsupported_media_type']

/** The answer 200 with a JSON document. */
export function json(
  description: string,
  name: string,
  schema: z.ZodType,
  examples: Readonly<Record<string, unknown>>,
): ResponseSpec {
  return { status: 200, description, content: { 'application/json': { name, schema, examples } } }
}

/** The answer 200 with a text of this media type. */
export function text(type: string, description: string): ResponseSpec {
  return { status: 200, description, content: { [type]: 'text' } }
}

export const page = (description: string) => text('text/html', description)

export function jsonBody(
  name: string,
  schema: z.ZodType,
  examples: Readonly<Record<string, unknown>>,
  required = true,
): Body {
  return { type: 'application/json', name, schema, required, examples }
}

export function query(
  name: string,
  schema: z.ZodType,
  description: string,
  example: string | number,
  required = false,
): Parameter {
  return { in: 'query', name, schema, required, description, example }
}

export const inPath = (name: string, schema: z.ZodType, description: string, example: string | number) =>
  ({ in: 'path', name, schema, required: true, description, example }) satisfies Parameter

export type Security =
  | 'identity'
  | 'dispatchSecret'
  | 'deepToken'
  | 'witnessProof'
  | 'webhookSignature'
  | 'feedbackSignature'

/** A schema under the name that it has in the document. */
export interface Named {
  readonly name: string
  readonly schema: z.ZodType
}

export interface Parameter {
  readonly in: 'query' | 'path'
  readonly name: string
  readonly schema: z.ZodType
  readonly required?: boolean
  readonly description: string
  readonly example: string | number
}

export interface Body extends Named {
  readonly type: 'application/json' | 'application/x-www-form-urlencoded'
  /** Taken as well, in the same form. */
  readonly also?: Body['type']
  readonly required: boolean
  readonly examples: Readonly<Record<string, unknown>>
}

/** The response with a status: a schema and an example for each media type. */
export interface ResponseSpec {
  readonly status: number
  readonly description: string
  readonly content: Readonly<
    Record<string, (Named & { readonly examples: Readonly<Record<string, unknown>> }) | 'text'>
  >
}

export interface Operation {
  readonly summary: string
  readonly description?: string
  readonly tag: 'Course' | 'Mail' | 'Payments' | 'Health' | 'Pages' | 'Operations' | 'Analytics'
  /** Optional: without it less is done, not nothing. */
  readonly security?: Security
  readonly securityOptional?: boolean
  readonly parameters?: readonly Parameter[]
  readonly body?: Body
  readonly answers: readonly ResponseSpec[]
  /** Beyond those that every operation has. */
  readonly errors: readonly ErrorCode[]
}

/** A row for each route and each of its methods: one that is missing does not compile. */
export type RouteOperations = {
  readonly [Name in WebRoute]: Readonly<Record<(typeof ROUTES)[Name]['methods'][number], Operation>>
}
