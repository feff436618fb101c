/**
 * A value that must never be printed. `String()`, template literals, `JSON.stringify` and `console.log` of a
 * Secret give `[secret]`; only `reveal()` gives the value, and only adapters at the edge call it.
 */
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
