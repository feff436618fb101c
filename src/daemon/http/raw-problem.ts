import { randomUUID } from 'node:crypto'
import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import { COMMON } from './respond.ts'

/** The one error shape for what never became a request: there is no route, and nobody's Accept to go by. */
export function rawErrorResponse(code: ErrorCode): {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
} {
  const { status, meaning } = ERRORS[code]
  const requestId = randomUUID()
  return {
    status,
    headers: { ...COMMON, 'Content-Type': 'application/json; charset=utf-8', 'X-Request-Id': requestId },
    body: JSON.stringify({ code, status, message: meaning, requestId }),
  }
}
