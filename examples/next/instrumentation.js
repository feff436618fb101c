/** Next calls this once, before the server takes requests: a half-configured environment ends here. */
export async function register() {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return
  const { register: validate } = await import('platformctl/env')
  validate()
}
