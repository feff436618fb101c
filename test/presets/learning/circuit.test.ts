import { expect, test } from 'vitest'
import { systemRandom } from '../../../src/core/host.ts'
import { brokenCircuit, GATES, type QuantumGate, simulator } from '../../../src/presets/learning/circuit.ts'

const ID: QuantumGate = [
  [
    { re: 1, im: 0 },
    { re: 0, im: 0 },
  ],
  [
    { re: 0, im: 0 },
    { re: 1, im: 0 },
  ],
]

test('a sound simulator passes, every time', () => {
  for (let run = 0; run < 200; run += 1) expect(brokenCircuit(systemRandom)).toBeUndefined()
})

const replaced = (name: string, gate: QuantumGate) => ({
  parse: (source: string) =>
    source.split(';').map((word) => (word.trim() === name ? gate : simulator.parse(word)[0]) ?? ID),
})
const entries = Object.keys(GATES).flatMap((name) =>
  [0, 1].flatMap((row) => [0, 1].map((column) => [name, row, column] as const)),
)

test.each(Object.keys(GATES))('it fails when %s does nothing', (name) => {
  expect(brokenCircuit(systemRandom, replaced(name, ID))).toBeDefined()
})

test.each(entries)('it fails when an entry of the matrix of %s is off (%d, %d)', (name, row, column) => {
  const gate = GATES[name] ?? ID
  const off = gate.map((line, r) =>
    line.map((value, c) =>
      r === row && c === column ? { re: value.re + 0.01, im: value.im - 0.02 } : value,
    ),
  ) as unknown as QuantumGate
  expect(brokenCircuit(systemRandom, replaced(name, off))).toBeDefined()
})

test.each([
  ['the parser drops a gate', { parse: (source: string) => simulator.parse(source).slice(1) }],
  [
    'the parser reverses the circuit',
    { parse: (source: string) => [...simulator.parse(source)].reverse().slice(1) },
  ],
  [
    'the parser rejects everything',
    {
      parse: () => {
        throw new SyntaxError('no')
      },
    },
  ],
  [
    'the gates act on |1⟩',
    { run: (circuit: readonly QuantumGate[]) => simulator.run([GATES.x ?? ID, ...circuit]) },
  ],
  [
    'the state loses its norm',
    { run: (circuit: readonly QuantumGate[]) => [{ re: 0, im: 0 }, simulator.run(circuit)[1]] as const },
  ],
  [
    'the amplitude is not squared',
    { chanceOfOne: ([, one]: ReturnType<typeof simulator.run>) => Math.hypot(one.re, one.im) },
  ],
  ['phases are ignored', { chanceOfOne: ([, one]: ReturnType<typeof simulator.run>) => one.re ** 2 }],
  ['the chance is not a number', { chanceOfOne: () => Number.NaN }],
  ['samples are always 0', { sample: () => 0 }],
  ['samples are always 1', { sample: (_: number, shots: number) => shots }],
  ['samples ignore the chance', { sample: (_: number, shots: number) => shots / 2 }],
  [
    'samples count the other outcome',
    {
      sample: (chance: number, shots: number, random: typeof systemRandom) =>
        shots - simulator.sample(chance, shots, random),
    },
  ],
])('it fails when %s', (_, broken) => {
  expect(brokenCircuit(systemRandom, broken)).toBeDefined()
})

test.each([0, 0.3, 0.999])('it fails on randomness that is stuck at %d', (stuck) => {
  expect(brokenCircuit({ bytes: systemRandom.bytes, fraction: () => stuck })).toBeDefined()
})
