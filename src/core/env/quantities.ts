/** A finite decimal number, or undefined. */
export function parseNumber(value: string): number | undefined {
  if (!/^[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:e[-+]?\d{1,3})?$/i.test(value)) return undefined
  const number = Number(value)
  return Number.isFinite(number) ? number : undefined
}

/** `true`, `yes`, `on` and `1`, or `false`, `no`, `off` and `0`, in any case; otherwise undefined. */
export function parseBoolean(value: string): boolean | undefined {
  if (/^(?:true|yes|on|1)$/i.test(value)) return true
  return /^(?:false|no|off|0)$/i.test(value) ? false : undefined
}

const MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
const UNITS = Object.keys(MS) as (keyof typeof MS)[]

/**
 * Milliseconds of `500ms`, `30s`, `1.5h`, `2d` or `1h30m`, or undefined. A number without a unit is refused, because
 * half of all programs take it for seconds and half for milliseconds.
 */
export function parseDuration(value: string): number | undefined {
  let [rest, total, last] = [value, 0, UNITS.length]
  while (rest !== '') {
    const match = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d|w)/.exec(rest)
    const unit = UNITS.find((name) => name === match?.[2])
    if (match === null || unit === undefined || UNITS.indexOf(unit) >= last) return undefined
    // Largest unit first, each once: 30m1h is a slip of the pen.
    last = UNITS.indexOf(unit)
    total += Number(match[1]) * MS[unit]
    rest = rest.slice(match[0].length)
  }
  const ms = Math.round(total)
  return value !== '' && Number.isSafeInteger(ms) ? ms : undefined
}

const BYTES: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
}

/** Bytes of `512`, `512B`, `10MB` (decimal) or `1.5GiB` (binary), or undefined. */
export function parseBytes(value: string): number | undefined {
  const match = /^(\d{1,15}(?:\.\d{1,6})?) ?([kmgt]?i?b)?$/i.exec(value)
  const size = BYTES[(match?.[2] ?? 'b').toLowerCase()]
  if (match === null || size === undefined) return undefined
  const bytes = Number(match[1]) * size
  return Number.isSafeInteger(Math.round(bytes)) ? Math.round(bytes) : undefined
}
