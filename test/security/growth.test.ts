import { expect, test, vi } from 'vitest'
import { clientKey } from '../../src/core/access/client.ts'
import { parseMailbox } from '../../src/core/address.ts'
import { isPersonalValue } from '../../src/core/analytics/sanitise.ts'
import { readCsv } from '../../src/core/csv.ts'
import { DIALECTS } from '../../src/core/env/dialects/dialect.ts'
import { readAs } from '../../src/core/env/dialects/read.ts'
import { portability } from '../../src/core/env/portability.ts'
import { parseEnvFile } from '../../src/core/env/reader.ts'
import { parseBaseUrl, parseDuration, postgresServers } from '../../src/core/env/values.ts'
import { readTags } from '../../src/core/live/sender.ts'
import { createBounceAddresses } from '../../src/core/mail/feedback/bounce-address.ts'
import { readSuppressionCsv } from '../../src/core/mail/feedback/suppressions.ts'
import { quotedPrintable } from '../../src/core/mail/transports/mime.ts'
import { createScrub } from '../../src/core/reporting/scrub.ts'
import { checkHeader } from '../../src/core/store/sqlite/age.ts'
import { trimEnd } from '../../src/core/trim-end.ts'
import { readExample } from '../../src/platform/init/sketch.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import {
  type Expression,
  expressionsIn,
  filesWithBuiltExpressions,
  filesWithTextLoops,
  isUnbounded,
  worstGrowth,
} from '../support/expressions.ts'
import { growthOf, LINEAR, timeOf } from '../support/growth.ts'

/** How many expressions of a file may take longer than linear time, and what bounds what they read. */
const BOUNDED: Readonly<Record<string, readonly [number, string]>> = {
  'src/cli/command.ts': [1, 'names of our own options'],
  'src/cli/demo/run.ts': [1, 'our own mail'],
  'src/cli/output/text.ts': [1, 'the digits of a number'],
  'src/core/env/groups.ts': [1, 'secrets of witnesses, at least 24 characters each'],
  'src/core/mail/compile/compile.ts': [2, 'an author’s own templates'],
  'src/core/mail/compile/plain-text.ts': [9, 'an author’s own templates'],
  'src/core/mail/lint/cascade.ts': [3, 'an author’s own templates'],
  'src/core/store/maintenance.ts': [1, 'our own migrations'],
  'src/core/store/migrations.ts': [1, 'our own migrations'],
  'src/core/store/schema.ts': [1, 'our own migrations'],
  'src/daemon/pages/layout.ts': [1, 'our own styles'],
  'src/platform/init/sketch.ts': [2, 'an operator’s own example, while a definition is begun'],
  'src/core/audit.ts': [1, '600 characters'],
  'src/core/reporting/scrub.ts': [5, '4,000 characters, timed below'],
  'src/core/analytics/sanitise.ts': [1, '512 characters'],
}

/** Files that put expressions together while they run, and from what. */
const BUILT_LATER: Readonly<Record<string, string>> = {
  'src/core/csv.ts': 'one class of characters, with the separator of the file',
  'src/core/env/contract.ts': 'patterns of a definition',
  'src/platform/init/sketch.ts': 'words of an operator’s own example',
  'src/core/mail/lint/structure.ts': 'paths of our own pages',
  'src/core/mail/lint/support.ts': 'names of HTML and CSS, for an author’s own templates',
  'src/daemon/metrics/outcomes.ts': 'labels of our own alerts',
}

/** The expressions that the files put together from texts when they are loaded. */
async function builtIn(files: readonly string[]): Promise<readonly Expression[]> {
  const made: Expression[] = []
  const recorded = new Proxy(RegExp, {
    construct(target, [source, flags]) {
      const pattern = new target(source, flags)
      // The nearest: a file that imports it may stand in the trace too.
      const trace = new Error().stack?.split('\n') ?? []
      const file = trace.flatMap((line) => files.filter((one) => line.includes(`/${one}:`)))[0]
      if (file !== undefined) made.push({ file, pattern })
      return pattern
    },
  })
  vi.stubGlobal('RegExp', recorded)
  vi.resetModules()
  for (const file of files) await import(/* @vite-ignore */ `../../${file}`)
  vi.unstubAllGlobals()
  return made
}

/** Measured twice where it counts. */
const isSlow = async ({ pattern }: Expression) => (await worstGrowth(pattern)) > LINEAR

test('every regular expression takes linear time, or reads what is bounded', {
  timeout: 900_000,
}, async () => {
  const building = filesWithBuiltExpressions('src/**/*.ts')
  const built = await builtIn(building)
  expect(
    building.filter((file) => !(file in BUILT_LATER) && !built.some((one) => one.file === file)),
  ).toEqual([])
  const all = [...expressionsIn('src/**/*.ts'), ...built].filter(({ pattern }) => isUnbounded(pattern))
  expect(all.length).toBeGreaterThan(200)
  const slow = await Promise.all(
    all.map(async (one) => ((await isSlow(one)) && (await isSlow(one)) ? [one] : [])),
  )
  const byFile = Map.groupBy(slow.flat(), ({ file }) => file)
  expect([...byFile].filter(([file, { length }]) => length > (BOUNDED[file]?.[0] ?? 0))).toEqual([])
})

test('the rule finds expressions that are quadratic, and none that is linear', {
  timeout: 60_000,
}, async () => {
  for (const pattern of [/\/+$/, /=+$/, /<([^<>\s]+@[^<>\s]+)>/, /^a:[ \t]*(.*)$/]) {
    // Other work on the machine can slow the smaller of two texts.
    const grown = await Promise.all([1, 2, 3].map(() => worstGrowth(pattern)))
    expect(Math.max(...grown), String(pattern)).toBeGreaterThan(LINEAR)
  }
  for (const pattern of [/^\s*\w+$/, /[^a-z]+/g, /^"(?:[^"\\]|\\.)*"$/])
    expect(await worstGrowth(pattern), String(pattern)).toBe(1)
})

const BOUNCES = createBounceAddresses('bounce@example.com', 'a key in tests only')

/**
 * 1.2 on a machine that does nothing else. Many small values let the collector of garbage and a full cache add three tenths
 * on a busy one; what is quadratic is 2.
 */
const MOST_GROWTH = 1.5

/** The least of ten: a collection in the middle of a measurement looks like growth. */
function least(measure: (runs: number) => number): number {
  let growth = measure(2)
  for (let again = 0; again < 9 && growth >= LINEAR; again += 1) growth = Math.min(growth, measure(3))
  return growth
}

/** A reader for each file whose loops go over a text from outside. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'src/core/address.ts': parseMailbox,
  'src/core/access/client.ts': (text) =>
    clientKey(['127.0.0.1'])({ socket: '127.0.0.1', forwarded: text.replaceAll('A=', '127.0.0.1,') }),
  'src/core/analytics/sanitise.ts': isPersonalValue,
  // Row by row, as a list is imported: keeping all of them would measure the memory.
  'src/core/csv.ts': (text) => {
    for (const _ of readCsv(text));
  },
  'src/core/env/reader.ts': (text) => parseEnvFile(learning.contract, text, '.env'),
  'src/core/env/portability.ts': (text) => {
    const { assignments } = parseEnvFile(learning.contract, text, '.env')
    return portability(learning.contract, text, '.env', assignments)
  },
  'src/core/env/values.ts': (text) => [parseDuration(text), parseBaseUrl(text), postgresServers(text)],
  'src/core/live/sender.ts': readTags,
  'src/core/mail/transports/mime.ts': (text) => quotedPrintable(text),
  'src/core/mail/feedback/suppressions.ts': (text) => {
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
  'src/platform/init/sketch.ts': readExample,
  'src/core/env/dialects': (text) => DIALECTS.map((dialect) => readAs(dialect, text)),
}
/** Files whose loops go over our own texts, or over a few words. */
const OWN: Readonly<Record<string, string>> = {
  'src/core/mail/compile/': 'an author’s own templates',
  'src/core/mail/lint/': 'an author’s own templates',
  'src/core/mail/template.ts': 'compiled templates',
  'src/core/mail/feedback/message.ts': 'the first 128 KB of a report, timed in hostile-report',
  'src/core/reporting/scrub.ts': '4,000 characters, timed below',
  'src/core/mail/feedback/provider.ts': 'the events of a webhook, each read once',
  'src/core/health/reach.ts': 'the path of a value, from a definition',
  'src/core/errors.ts': 'causes of an error',
  'src/core/store/copy.ts': 'names of tables',
  'src/core/store/sqlite/': 'names of files',
  'src/daemon/http/app.ts': 'our own routes',
  'src/daemon/http/respond.ts': 'a header, of which 64 parts are read',
  'src/daemon/pages/status/bars.ts': 'a sign for each day of 90',
  'src/daemon/routes/openapi': 'our own routes',
  'src/platform/': 'a definition',
}

test('every file that loops over a text has its reader here', () => {
  const files = filesWithTextLoops('src/{core,daemon,platform,witness}/**/*.ts')
  expect(files.length).toBeGreaterThan(10)
  const known = [...Object.keys(READERS), ...Object.keys(OWN)]
  expect(files.filter((file) => !known.some((one) => file.startsWith(one)))).toEqual([])
})

const PUMPS = [...' /"\\=$#\'\n,<@é', '${', '${a', 'a=\n', '1h', '\n-> ', ' #', ';a', '# ']

test.each(Object.entries(READERS))('%s reads any text in linear time', { timeout: 120_000 }, (_, read) => {
  for (const pump of PUMPS) {
    const text = (size: number) => `A=${pump.repeat(size / pump.length)}\u2028\0`
    expect(
      least((runs) => growthOf(text, read, { from: 32_000, runs, isSteady: runs > 2 })),
      JSON.stringify(pump),
    ).toBeLessThan(MOST_GROWTH)
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
