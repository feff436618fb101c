/**
 * The records that decide who may have which mail sent, to whom, and with which link (CONTRACT §4). A record that
 * the caller may not use is `undefined`, exactly as one that does not exist. `url` is absolute, or a path on the
 * site. The store has an adapter over SQL tables (docs/directory.md); an embedding program may give its own.
 */
export interface Directory {
  /** An open invite of an organisation of which `admin` is an admin. */
  findInvite(query: { readonly id: string; readonly admin: string }): Promise<Invite | undefined>
  /** A login request that has not expired at `now` (UTC milliseconds). Asked for by the service role only. */
  findLoginRequest(query: { readonly id: string; readonly now: number }): Promise<LoginRequest | undefined>
  /** An exam attempt of this subject's own that was passed. */
  findPassedExam(query: { readonly id: string; readonly subject: string }): Promise<PassedExam | undefined>
}

export interface Invite {
  /** The invited address. */
  readonly address: string
  /** The organisation's name, as the mail shows it. */
  readonly organisation: string
  readonly url: string
  /** The organisation's plan does not cover invites: 402 for its admins. */
  readonly locked: boolean
}

export interface LoginRequest {
  readonly address: string
  readonly url: string
}

export interface PassedExam {
  /** The exam's title. */
  readonly exam: string
  /** 0 to 100. */
  readonly scorePercent: number
  readonly url: string
}
