import { randomUUID } from 'node:crypto'
import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import { COMMON, prefersHtml } from './respond.ts'

/** Seconds after which a client may try again what is not available yet. */
const RETRY_AFTER = '1'

/**
 * The standard error for input that could not be parsed as a request, and for requests before anything can answer them:
 * JSON, or a plain page if the Accept header names HTML.
 */
export function rawErrorResponse(
  code: ErrorCode,
  { accept = '', message }: { readonly accept?: string; readonly message?: string } = {},
): {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
} {
  const { status, meaning } = ERRORS[code]
  const requestId = randomUUID()
  const text = message ?? meaning
  const html = prefersHtml(accept)
  return {
    status,
    headers: {
      ...COMMON,
      'Content-Type': html ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
      'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
      'X-Request-Id': requestId,
      ...(status === 503 && { 'Retry-After': RETRY_AFTER }),
    },
    // The sentences are ours, so nothing needs escaping.
    body: html
      ? `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>${status}</title><h1>Not available just now</h1><p>${text}</p>`
      : JSON.stringify({ code, status, message: text, requestId }),
  }
}
