import { expect, test } from 'vitest'
import { parseMailbox } from '../../src/core/address.ts'
import { isPersonalValue } from '../../src/core/analytics/personal-value.ts'
import { readCsv } from '../../src/core/csv.ts'
import { DIALECTS, readAs } from '../../src/core/env/dialects/read.ts'
import { parseEnvFile } from '../../src/core/env/reader.ts'
import { parseBaseUrl, parseDuration } from '../../src/core/env/values.ts'
import { createBounceAddresses } from '../../src/core/mail/feedback/bounce-address.ts'
import { readSuppressionCsv } from '../../src/core/mail/feedback/suppression-csv.ts'
import { quotedPrintable } from '../../src/core/mail/mime/mime.ts'
import { createScrub } from '../../src/core/reporting/scrub.ts'
import { checkHeader } from '../../src/core/store/sqlite/age.ts'
import { trimEnd } from '../../src/core/trim-end.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { expressionsIn, filesWithTextLoops, isUnbounded, worstTime } from '../support/expressions.ts'
import { growthOf, timeOf } from '../support/growth.ts'

/** The only files with expressions that take longer than linear time, and what bounds what they read. */
const BOUNDED: Readonly<Record<string, string>> = {
  'src/core/mail/compile/mjml-text.ts': 'an author’s own templates',
  'src/core/mail/compile/plain-text.ts': 'an author’s own templates',
  'src/core/mail/lint/cascade.ts': 'an author’s own templates',
  'src/core/store/maintenance.ts': 'our own migrations',
  'src/platform/init/read-example.ts': 'an operator’s own example, while a definition is begun',
  'src/platform/init/sketch.ts': 'thirty characters',
  'src/core/audit.ts': '600 characters',
  'src/core/reporting/scrub.ts': '4,000 characters, timed below',
}

/** Milliseconds: far more than a linear expression takes for 32,000 characters, and far less than a quadratic one. */
const SLOW_MS = 60

test('every regular expression takes linear time, or reads what is bounded', { timeout: 180_000 }, () => {
  const all = expressionsIn('src/**/*.ts').filter(({ pattern }) => isUnbounded(pattern))
  expect(all.length).toBeGreaterThan(200)
  const slow = all.filter(({ file, pattern }) => !(file in BOUNDED) && worstTime(pattern) > SLOW_MS)
  expect(slow).toEqual([])
})

test('the rule finds expressions that are quadratic, and none that is linear', { timeout: 60_000 }, () => {
  for (const pattern of [/\/+$/, /=+$/, /<([^<>\s]+@[^<>\s]+)>/])
    expect(worstTime(pattern), String(pattern)).toBeGreaterThan(SLOW_MS)
  for (const pattern of [/^\s*\w+$/, /[^a-z]+/g, /^"(?:[^"\\]|\\.)*"$/])
    expect(worstTime(pattern), String(pattern)).toBeLessThan(SLOW_MS)
})

const BOUNCES = createBounceAddresses('bounce@example.com', 'a key in tests only')

/** Halfway between linear and quadratic: many small values let the collector of garbage add two tenths. */
const MOST_GROWTH = 1.5

/** The least of six: a collection in the middle of a measurement looks like growth. */
function least(measure: () => number): number {
  let growth = measure()
  for (let again = 0; again < 5 && growth >= MOST_GROWTH; again += 1) growth = Math.min(growth, measure())
  return growth
}

/** A reader for each file whose loops go over a text from outside. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'src/core/address.ts': parseMailbox,
  'src/core/analytics/personal-value.ts': isPersonalValue,
  'src/core/csv.ts': readCsv,
  'src/core/env/reader.ts': (text) => parseEnvFile(learning.contract, text, '.env'),
  'src/core/env/values.ts': (text) => [parseDuration(text), parseBaseUrl(text)],
  'src/core/mail/mime/mime.ts': (text) => quotedPrintable.encode(text),
  'src/core/mail/feedback/suppression-csv.ts': (text) => {
    try {
      return readSuppressionCsv(`email\n${text}`, 'complaint')
    } catch {
      return undefined
    }
  },
  'src/core/mail/feedback/bounce-address.ts': (text) => BOUNCES.namedIn(text),
  'src/core/store/sqlite/age.ts': (text) => {
    try {
      return checkHeader('b.age', Buffer.from(text))
    } catch {
      return undefined
    }
  },
  'src/core/trim-end.ts': (text) => trimEnd(text, '/'),
  'src/core/env/dialects': (text) => DIALECTS.map((dialect) => readAs(dialect, text)),
}
/** Files whose loops go over our own texts, or over a few words. */
const OWN: Readonly<Record<string, string>> = {
  'src/core/analytics/sanitise.ts': 'properties of an event, whose body and number are bounded',
  'src/core/mail/render.ts': 'compiled templates',
  'src/core/mail/feedback/message.ts': 'the first 128 KB of a report, timed in hostile-report',
  'src/core/store-fault.ts': 'causes of an error',
}

test('every file that loops over a text has its reader here', () => {
  const files = filesWithTextLoops('src/{core,daemon,platform}/**/*.ts')
  expect(files.length).toBeGreaterThan(10)
  const known = [...Object.keys(READERS), ...Object.keys(OWN)]
  expect(files.filter((file) => !known.some((one) => file.startsWith(one)))).toEqual([])
})

const PUMPS = [
  ' ',
  '/',
  '"',
  '\\',
  '=',
  '$',
  '${',
  '${a',
  '#',
  "'",
  '\n',
  'a=\n',
  ',',
  '<',
  '@',
  '1h',
  '\n-> ',
  'é',
]

test.each(Object.entries(READERS))('%s reads any text in linear time', { timeout: 120_000 }, (_, read) => {
  for (const pump of PUMPS) {
    const text = (size: number) => `A=${pump.repeat(size / pump.length)}\0`
    const growth = least(() => growthOf(text, read, { from: 32_000, doublings: 3, runs: 2 }))
    expect(growth, JSON.stringify(pump)).toBeLessThan(MOST_GROWTH)
  }
})

test('a report is scrubbed in less than a tenth of a second, whatever it says', () => {
  const scrub = createScrub()
  for (const pump of ['za', '=a', '/=', ' ', '"', '@', ':', 'a://', '1.', 'eyJa.'])
    expect(
      timeOf(() => scrub.text(pump.repeat(1_000_000 / pump.length))),
      pump,
    ).toBeLessThan(100)
})
