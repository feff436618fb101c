/**
 * The host's own check that a person subscribes (a captcha, a proof of work): false refuses the request. `response` is
 * what the form sent as `challenge`, `client` the key that rate limits count by.
 */
export type Challenge = (asked: {
  readonly response: string | undefined
  readonly email: string
  readonly client: string
}) => boolean | Promise<boolean>
