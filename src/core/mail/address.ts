/** A parsed address: handed to transports as an object, never as a string to be parsed again. */
export interface Mailbox {
  /** Display name, without CR, LF or NUL; undefined for a bare address. */
  readonly name: string | undefined
  /** `local@domain` exactly as stored; never case-folded for sending. */
  readonly address: string
}
