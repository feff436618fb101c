import type { ErrorCode } from '../../../core/errors.ts'
import type { ResponseSpec } from '../operation.ts'

/** The errors of a body that must be JSON. */
export const JSON_BODY: readonly ErrorCode[] = ['bad_request', 'payload_too_large', 'unsupported_media_type']

export const json = (
  description: string,
  form: Exclude<ResponseSpec['content'][string], 'text'>,
): ResponseSpec => ({
  status: 200,
  description,
  content: { 'application/json': form },
})

export const page = (description: string): ResponseSpec => ({
  status: 200,
  description,
  content: { 'text/html': 'text' },
})
