import type { DefinitionSketch, SketchedGroup } from './sketch.ts'

/** The text of a `platform.config.ts`. */
export function definitionText(sketch: DefinitionSketch, name: string): string {
  const groups = sketch.groups.map(groupText)
  return `import { definePlatform } from 'platformctl/config'

export default definePlatform({
  preset: 'base',
  name: ${literal(name)},
  services: { web: {} },
${groups.length === 0 ? EXAMPLE : `  groups: {\n${groups.join('\n')}\n  },`}
})
`
}

const EXAMPLE = `  // groups: {
  //   bookings: {
  //     unlocks: 'the booking calendar',
  //     absent: 'the calendar is hidden',
  //     variables: { BOOKINGS_URL: { kind: 'url' }, BOOKINGS_TOKEN: { kind: 'secret' } },
  //     rules: [{ allOrNone: ['BOOKINGS_URL', 'BOOKINGS_TOKEN'] }],
  //   },
  // },`

function groupText({ name, variables, pairs }: SketchedGroup): string {
  const rows = variables.map(({ name: variable, variable: of }) => {
    const fields = Object.entries(of).map(([field, value]) => `${field}: ${literal(value)}`)
    return `        ${key(variable)}: { ${fields.join(', ')} },`
  })
  const rules = pairs.map((pair) => `        { allOrNone: ${literal(pair)} },`)
  return `    ${key(name)}: {
      unlocks: ${literal(name)},
      absent: ${literal(`${name} is off`)},
      variables: {
${rows.join('\n')}
      },${rules.length === 0 ? '' : `\n      rules: [\n${rules.join('\n')}\n      ],`}
    },`
}

function key(name: string): string {
  return /^[A-Za-z]\w*$/.test(name) ? name : literal(name)
}

/** A value as TypeScript writes it. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'string') return JSON.stringify(value)
  return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}
