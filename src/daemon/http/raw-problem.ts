import { randomUUID } from 'node:crypto'
import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import { COMMON } from './respond.ts'

/** The standard error body for input that could not be parsed as a request, and so has no route and no Accept header. */
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
