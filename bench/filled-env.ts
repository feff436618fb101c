import { VARIABLES } from '../test/support/learning.ts'

const filled = VARIABLES.map(({ name, example, prefixes }) => ({
  name,
  line: `${name}=${example || `${prefixes?.test[0] ?? ''}a-value-that-is-long-enough-0123456789`}`,
}))
/** Exclusive pairs cannot be set at once, and no made-up value is a DKIM key. */
const LEFT_OUT = /^(?:MAILER_API_URL|MAILER_PROVIDER|DATASTORE_JWKS_URL|MAILER_DKIM_.*)$/

/** Lines of an env file that sets every variable, which breaks rules. */
export const ALL_LINES = filled.map(({ line }) => line)
/** Lines of one without faults that sets all that it can. */
export const SOUND_LINES = filled.filter(({ name }) => !LEFT_OUT.test(name)).map(({ line }) => line)
