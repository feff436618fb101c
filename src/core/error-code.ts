/** The code of an error of the system or a package (`ECONNREFUSED`); empty without one. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}
