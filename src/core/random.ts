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
