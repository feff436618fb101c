import type { Random } from '../../core/host.ts'

/** A one-qubit circuit, end to end: parse, simulate its state vector, sample, compare with the exact distribution. */
interface Complex {
  readonly re: number
  readonly im: number
}
/** Amplitudes of |0⟩ and |1⟩. */
export type StateVector = readonly [zero: Complex, one: Complex]
export type QuantumGate = readonly [row0: StateVector, row1: StateVector]

const c = (re: number, im = 0): Complex => ({ re, im })
const R = Math.SQRT1_2
const gate = (a: Complex, b: Complex, c: Complex, d: Complex): QuantumGate => [
  [a, b],
  [c, d],
]

/** Unitary matrices, |0⟩ first (Nielsen and Chuang, §1.3.1). */
export const GATES: Readonly<Record<string, QuantumGate>> = {
  h: gate(c(R), c(R), c(R), c(-R)),
  x: gate(c(0), c(1), c(1), c(0)),
  y: gate(c(0), c(0, -1), c(0, 1), c(0)),
  z: gate(c(1), c(0), c(0), c(-1)),
  s: gate(c(1), c(0), c(0), c(0, 1)),
  t: gate(c(1), c(0), c(0), c(R, R)),
}

const times = (a: Complex, b: Complex) => c(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
const plus = (a: Complex, b: Complex) => c(a.re + b.re, a.im + b.im)
const size = ({ re, im }: Complex) => re ** 2 + im ** 2

/** Its parts are parameters of the check, so that a test can break one. */
export const simulator = {
  /** `h; z; h`: names from left to right. A SyntaxError for a name that is no gate. */
  parse: (source: string) =>
    source.split(';').map((word) => {
      const gate = GATES[word.trim()]
      if (gate === undefined) throw new SyntaxError(`there is no gate ${word.trim()}`)
      return gate
    }),
  /** The state after the gates, from |0⟩. */
  run: (circuit: readonly QuantumGate[]) =>
    circuit.reduce<StateVector>(
      ([zero, one], [row0, row1]) => [
        plus(times(row0[0], zero), times(row0[1], one)),
        plus(times(row1[0], zero), times(row1[1], one)),
      ],
      [c(1), c(0)],
    ),
  /** The chance of reading 1 (the Born rule). */
  chanceOfOne: ([, one]: StateVector) => size(one),
  /** How often 1 was read in `shots` measurements. */
  sample(chanceOfOne: number, shots: number, random: Random) {
    let ones = 0
    for (let shot = 0; shot < shots; shot += 1) if (random.fraction() < chanceOfOne) ones += 1
    return ones
  },
}

const SHOTS = 1000

/** Circuits with their known distributions. Those with two H gates distinguish signs and phases, which no single gate can. */
const KNOWN: readonly (readonly [source: string, chanceOfOne: number])[] = [
  ['h', 1 / 2],
  ['x', 1],
  ['y', 1],
  ['h; h', 0],
  ['h; x; h', 0],
  ['h; z; h', 1],
  ['h; y; h', 1],
  ['x; h; s; s; h', 0],
  ['h; s; h', 1 / 2],
  ['h; t; h', Math.sin(Math.PI / 8) ** 2],
]

/** The first circuit that does not give its known distribution; undefined if all do. Never throws. */
export function brokenCircuit(random: Random, broken: Partial<typeof simulator> = {}): string | undefined {
  const { parse, run, chanceOfOne, sample } = { ...simulator, ...broken }
  return KNOWN.find(([source, expected]) => {
    try {
      const state = run(parse(source))
      const chance = chanceOfOne(state)
      const whole = size(state[0]) + size(state[1])
      if (!(Math.abs(whole - 1) < 1e-9 && Math.abs(chance - expected) < 1e-9)) return true
      // Seven standard deviations: a sound simulator fails once in 10^11 runs.
      const tolerance = 7 * Math.sqrt(SHOTS * expected * (1 - expected))
      return !(Math.abs(sample(chance, SHOTS, random) - expected * SHOTS) <= tolerance)
    } catch {
      return true
    }
  })?.[0]
}
