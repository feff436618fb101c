import { stripTypeScriptTypes } from 'node:module'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkDefinition } from '../../src/platform/check/check.ts'
import { sketchDefinition } from '../../src/platform/init/sketch.ts'
import { definitionText } from '../../src/platform/init/write.ts'
import { PRESET_PARTS } from '../../src/platform/presets.ts'
import { baseGroups } from '../../src/presets/base/groups.ts'

const sketch = (text: string) => sketchDefinition(text, baseGroups)

/** The object that a written definition exports, without loading a file for each. */
function exportedBy(text: string): unknown {
  const body = stripTypeScriptTypes(text)
    .replace(/^import .*$/m, '')
    .replace('export default definePlatform(', 'return (')
  return new Function(body)()
}

test('an .env.schema says kinds, secrets, values and defaults', () => {
  const { groups } = sketch(`# @defaultSensitive=false
# ---
# Where bookings live.
# @required @type=url
BOOKINGS_URL=http://bookings.internal:4000
# @sensitive
BOOKINGS_CODE=canary
# @type=enum(eu, us)
BOOKINGS_REGION=eu
# @type=port
BOOKINGS_PORT=
`)
  expect(groups).toMatchObject([
    {
      name: 'bookings',
      variables: [
        {
          name: 'BOOKINGS_URL',
          variable: {
            kind: 'url',
            summary: 'Where bookings live.',
            default: 'http://bookings.internal:4000',
          },
        },
        { name: 'BOOKINGS_CODE', variable: { kind: 'secret' } },
        { name: 'BOOKINGS_REGION', variable: { kind: 'enum', of: ['eu', 'us'], default: 'eu' } },
        { name: 'BOOKINGS_PORT', variable: { kind: 'port' } },
      ],
    },
  ])
})

test.each([
  ['A_URL=https://a.example', 'url'],
  ['A_URL=postgres://me:canary@db/a', 'secret'],
  ['A_TOKEN=', 'secret'],
  ['A_PUBLISHABLE_KEY=', 'text'],
  ['A_ON=true', 'boolean'],
  ['A_COUNT=12', 'integer'],
  ['A_WAIT_TIMEOUT=30s', 'duration'],
  ['A_TIMEOUT=30', 'integer'],
  ['A_PORT=8080', 'port'],
  ['A_HOST=db.internal', 'host'],
  ['# eu | us\nA_PLACE=eu', 'enum'],
  ['A_WORD=hello', 'text'],
  ['A_MAIL_TO=a@b.example', 'email'],
])('%j looks like a value of the kind %s', (text, kind) => {
  expect(sketch(text).groups[0]?.variables[0]?.variable.kind).toBe(kind)
})

test('whatever is in an example, the definition made of it loads and has no faults', () => {
  const line = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc
      .tuple(
        fc.constantFrom('', '# ', 'export ', '# --- ', '## '),
        fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,12}$/),
        fc.constantFrom(
          '',
          'true',
          '7',
          'https://a.example',
          "it's",
          '"quoted"',
          'sk_live_0123456789',
          'postgres://a:b@c/d',
          '$X',
          '`',
        ),
      )
      .map(([before, name, value]) => `${before}${name}=${value}`),
    fc.constantFrom(
      '',
      '# one of a, b',
      '# @type=enum(a,b) @sensitive',
      '# @type=number',
      "# it's */ `here` $x",
      '# --- Mail ---',
      '## ünï',
    ),
  )
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
      const definition = exportedBy(definitionText(sketch(lines.join('\n')), { name: "Kiln's" }))
      expect(checkDefinition(definition, PRESET_PARTS)).toEqual([])
      expect(JSON.stringify(definition)).not.toContain('sk_live_0123456789')
    }),
    { numRuns: 1000 },
  )
})
