import type { Random } from '../random.ts'

/** A one-qubit circuit, end to end: parse, simulate, sample, compare. It fails when the simulator is broken. */
type Amplitudes = readonly [zero: number, one: number]
type Gate = (state: Amplitudes) => Amplitudes

const R = Math.SQRT1_2

/** Real matrices are enough for these gates (and for the course's fourth day). */
export const GATES: Readonly<Record<string, Gate>> = {
  h: ([zero, one]) => [R * (zero + one), R * (zero - one)],
  x: ([zero, one]) => [one, zero],
  z: ([zero, one]) => [zero, -one],
}

/** `h; z; h`: gate names separated by semicolons, applied to |0⟩ from left to right. */
function parseCircuit(source: string, gates: Readonly<Record<string, Gate>> = GATES): Gate[] {
  return source.split(';').map((word) => {
    const gate = gates[word.trim()]
    if (gate === undefined) throw new SyntaxError(`there is no gate ${word.trim()}`)
    return gate
  })
}

/** The chance of reading 1. */
function simulate(circuit: readonly Gate[]): number {
  const [, one] = circuit.reduce<Amplitudes>((state, gate) => gate(state), [1, 0])
  return one ** 2
}

/** How often 1 was read in `shots` measurements. */
function sample(chanceOfOne: number, shots: number, random: Random): number {
  let ones = 0
  for (let shot = 0; shot < shots; shot += 1) if (random.fraction() < chanceOfOne) ones += 1
  return ones
}

const SHOTS = 1000
/** Seven standard deviations of a fair coin over 1,000 shots: a sound simulator fails once in 10^11 runs. */
const TOLERANCE = 7 * Math.sqrt(SHOTS / 4)

/** Circuits whose distribution is known by hand: the last tells signs apart, which no single H can. */
const KNOWN: readonly (readonly [source: string, chanceOfOne: number])[] = [
  ['h', 0.5],
  ['x', 1],
  ['h; h', 0],
  ['h; z; h', 1],
]

/** Undefined when every circuit gives its distribution; else the first that does not. */
export function brokenCircuit(
  random: Random,
  gates: Readonly<Record<string, Gate>> = GATES,
): string | undefined {
  for (const [source, expected] of KNOWN) {
    const chance = simulate(parseCircuit(source, gates))
    const ones = sample(chance, SHOTS, random)
    const exact = Math.abs(chance - expected) < 1e-9
    if (!exact || Math.abs(ones - expected * SHOTS) > TOLERANCE) return source
  }
  return undefined
}
