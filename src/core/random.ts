/** Randomness as a parameter, so that a simulation can replay a run from its seed. */
export interface Random {
  /** Cryptographically strong bytes in production. */
  bytes(length: number): Uint8Array
  /** Uniform in [0, 1): for jitter, never for secrets. */
  fraction(): number
}

export const systemRandom: Random = {
  // The global, because importing node:crypto costs every command a start that draws no bytes.
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
  fraction: () => Math.random(),
}

/** Random and URL-safe. Never with a hyphen first: a command would take it for an option. */
export function newId({ bytes }: Pick<Random, 'bytes'>, length: number): string {
  const id = Buffer.from(bytes(length)).toString('base64url')
  return id.startsWith('-') ? `0${id.slice(1)}` : id
}
