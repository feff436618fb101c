import { OpenapiAnswer } from '../answers.ts'
import type { RouteOperations } from '../operation.ts'
import { json } from './common.ts'

export const OPENAPI = {
  openapi: {
    GET: {
      tag: 'Operations',
      summary: 'This document',
      answers: [
        json('OpenAPI 3.1, made from the schemas that validate.', {
          name: 'OpenApi',
          schema: OpenapiAnswer,
          examples: { document: { openapi: '3.1.1', paths: {} } },
        }),
      ],
      errors: [],
    },
  },
} satisfies Partial<RouteOperations>
