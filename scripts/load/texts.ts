import { fill, isSafeUrl } from '../../src/core/mail/template.ts'
import { inertText, recordUrl } from '../../src/core/mail/transactional.ts'
import { readEnv, validateAll } from '../../src/env.ts'
import { ENV_LINES, SLOT_VALUES } from './corpus.ts'
import { type Dice, dice } from './random.ts'

const SITE = 'https://www.example.com'
const CANARY = 'canary-of-a-secret'

/** Reads the env file, or the mail, with this number. Gives the fault found, or undefined. */
export function textFault(seed: number, index: number): string | undefined {
  const random = dice((seed ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0)
  try {
    return index % 20 === 0 ? envFault(random) : mailFault(random)
  } catch (error) {
    return `a text is thrown at: ${error instanceof Error ? error.message : String(error)}`
  }
}

/** No finding repeats a secret or holds what steers a terminal. */
function envFault(random: Dice): string | undefined {
  const lines = Array.from({ length: 1 + random.below(8) }, () => random.pick(ENV_LINES))
  const text = lines.join(random.pick(['\n', '\r\n', '\r', '\n\n']))
  const read = readEnv(random.chance(0.2) ? text.slice(0, random.below(text.length + 1)) : text)
  const report = validateAll(Object.fromEntries(read.values))
  for (const { cause, fix } of [...read.findings, ...report.findings]) {
    if (`${cause}${fix}`.includes(CANARY)) return `a finding repeats a secret: ${cause}`
    if (/\p{Cc}/u.test(`${cause}${fix}`))
      return `a finding holds a control character: ${JSON.stringify(cause)}`
  }
  return undefined
}

/** No name brings a link or a line into a subject, no path leaves the site, no value ends an attribute. */
function mailFault(random: Dice): string | undefined {
  const value = Array.from({ length: 1 + random.below(4) }, () => random.pick(SLOT_VALUES)).join(
    random.pick(['', ' ', '.', '/']),
  )
  const name = inertText(value)
  if (/:\/\/|[@\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(name))
    return `a name is not inert: ${JSON.stringify(value)}`
  const link = recordUrl(value, SITE)
  if (link !== undefined && !/^https?:\/\/[^/\\?#]/i.test(value) && new URL(link).origin !== SITE)
    return `a link leaves the site: ${JSON.stringify(value)}`
  if (isSafeUrl(value) && /["'<>\s]/.test(value.replace(/'/g, '')))
    return `a link ends an attribute: ${JSON.stringify(value)}`
  const html = fill(['<a title="', { slot: 'name', as: 'html' }, '">'], { name: value })
  return /^<a title="[^"<>]*">$/s.test(html)
    ? undefined
    : `a value ends an attribute: ${JSON.stringify(value)}`
}
