import { FeedbackFormatError } from './event.ts'

type Fields = Readonly<Record<string, unknown>>

/** An object's own fields; a FeedbackFormatError for anything else. */
export function fields(value: unknown, where: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new FeedbackFormatError(`${where} is not an object`)
  // The check above leaves plain objects of JSON, whose keys are strings.
  return value as Fields
}

export function optionalFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

export function list(value: unknown, where: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new FeedbackFormatError(`${where} is not a list`)
  return value
}

export function text(value: unknown, where: string): string {
  if (typeof value !== 'string' || value === '' || value.length > 1000)
    throw new FeedbackFormatError(`${where} is not a text of 1 to 1,000 characters`)
  return value
}

export function optionalText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= 1000 ? value : undefined
}

/** UTC milliseconds of an ISO 8601 time or of Unix seconds; `now` when it is missing or lies in the future. */
export function timeOf(value: unknown, now: number): number {
  const at =
    typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isFinite(at) && at > 0 ? Math.min(Math.round(at), now) : now
}

/** A Message-ID without its angle brackets. */
export function messageId(value: unknown): string | undefined {
  return optionalText(value)?.replace(/^<|>$/g, '')
}
