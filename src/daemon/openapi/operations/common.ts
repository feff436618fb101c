import type { ErrorCode } from '../../../core/errors.ts'
import type { Answer } from '../operation.ts'

/** The errors of a body that must be JSON. */
export const JSON_BODY: readonly ErrorCode[] = ['bad_request', 'payload_too_large', 'unsupported_media_type']

export const json = (description: string, form: Exclude<Answer['content'][string], 'text'>): Answer => ({
  status: 200,
  description,
  content: { 'application/json': form },
})

export const page = (description: string): Answer => ({
  status: 200,
  description,
  content: { 'text/html': 'text' },
})
