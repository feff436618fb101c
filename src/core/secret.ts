/** A value that never prints: `String()`, JSON and `console.log` give `[secret]`, and only `reveal()` the value. */
export interface Secret {
  reveal(): string
  toString(): string
  toJSON(): string
}

const MASK = '[secret]'

export function secret(value: string): Secret {
  return {
    reveal: () => value,
    toString: () => MASK,
    toJSON: () => MASK,
    // Node's inspector would otherwise show the closure's function names, which is harmless but noisy.
    [Symbol.for('nodejs.util.inspect.custom')]: () => MASK,
  } as Secret
}

/** A secret that can be rotated: `current` signs and is sent, and each of `accepted` (it included) is still valid. */
export interface RotatingSecret {
  readonly current: Secret
  readonly accepted: readonly Secret[]
}

/** The entries of a list, separated by commas; of a secret that is being rotated (CONTRACT §9.4), the newest first. */
export const splitList = (value: string): string[] => value.split(',').flatMap((part) => part.trim() || [])

/** A secret, or several separated by commas; undefined when there is none. */
export function rotatingSecret(value: string): RotatingSecret | undefined {
  const accepted = splitList(value).map(secret)
  const [current] = accepted
  return current && { current, accepted }
}

/** Whether an Authorization header can carry a secret as a bearer token: visible ASCII characters, and no space. */
export const isBearerToken = (text: string) => /^[\x21-\x7e]{1,4096}$/.test(text)
