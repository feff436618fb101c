/** The code of an error of the system or a package (`ECONNREFUSED`); empty without one. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}

/** The name of a fault for the log; its text could quote an address or a secret. */
export const faultName = (error: unknown) => (error instanceof Error ? error.name : 'unknown')

/** An error that a code alone describes. */
export const codeError = (code: string) => Object.assign(new Error(code), { code })
