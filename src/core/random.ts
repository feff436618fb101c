import { randomBytes } from 'node:crypto'

/** Randomness as a parameter, so that a simulation can replay a run from its seed. */
export interface Random {
  /** Cryptographically strong bytes in production. */
  bytes(length: number): Uint8Array
  /** Uniform in [0, 1): for jitter, never for secrets. */
  fraction(): number
}

export const systemRandom: Random = {
  bytes: (length) => randomBytes(length),
  fraction: () => Math.random(),
}
