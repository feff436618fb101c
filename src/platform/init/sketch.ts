import type { GroupDefinition } from '../../core/env/definition.ts'
import { type Inferred, infer } from './infer.ts'
import { readExample, type Sketch } from './read-example.ts'

/** A group of a definition to be written. */
export interface SketchedGroup {
  readonly name: string
  readonly variables: readonly Inferred[]
  /** Variables that seem to belong together, judging by their names. */
  readonly pairs: readonly (readonly string[])[]
}

/** The groups that `init` makes of a file, and the variables that it leaves out. */
export interface DefinitionSketch {
  readonly groups: readonly SketchedGroup[]
  /** Variables that the preset has already. */
  readonly known: readonly string[]
  /** Variables of the runtime itself, which no platform reads. */
  readonly skipped: readonly string[]
}

/** Groups the variables of an example by their headings, or by the first word of their names. */
export function sketchDefinition(
  text: string,
  preset: Readonly<Record<string, GroupDefinition>>,
): DefinitionSketch {
  const ofPreset = new Set(Object.values(preset).flatMap(({ variables }) => Object.keys(variables)))
  const all = readExample(text)
  const own = all.filter(
    ({ name }) => !ofPreset.has(name) && !/^(?:NODE_|__)/.test(name) && name.length <= 100,
  )
  const byGroup = Map.groupBy(own, (sketch) => groupOf(sketch, own, Object.keys(preset)))
  return {
    groups: [...byGroup].map(([name, sketches]) => ({
      name,
      variables: sketches.map(infer),
      pairs: pairsOf(sketches.map((sketch) => sketch.name)),
    })),
    known: all.map(({ name }) => name).filter((name) => ofPreset.has(name)),
    skipped: all.map(({ name }) => name).filter((name) => name.startsWith('NODE_')),
  }
}

function groupOf(sketch: Sketch, all: readonly Sketch[], taken: readonly string[]): string {
  const first = firstWord(sketch.name)
  const shared = all.filter(({ name }) => firstWord(name) === first).length > 1
  const name = slug(sketch.heading ?? (shared ? first : '')) || 'app'
  return taken.includes(name) ? `own-${name}` : name
}

function firstWord(name: string): string {
  return name.replace(/^(?:NEXT_PUBLIC|VITE|PUBLIC)_/, '').split('_')[0] ?? ''
}

function slug(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 30)
    .replace(/-+$/, '')
}

/** Suffixes of variables that only work together. */
const PAIRS = [
  ['API_KEY', 'API_SECRET'],
  ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'],
  ['CLIENT_ID', 'CLIENT_SECRET'],
  ['USERNAME', 'PASSWORD'],
  ['USER', 'PASSWORD'],
  ['REST_URL', 'REST_TOKEN'],
  ['ACCOUNT_SID', 'AUTH_TOKEN'],
] as const

function pairsOf(names: readonly string[]): readonly (readonly string[])[] {
  return PAIRS.flatMap(([one, other]) =>
    names.flatMap((name) => {
      const partner = `${name.slice(0, -one.length)}${other}`
      return name.endsWith(one) && names.includes(partner) ? [[name, partner]] : []
    }),
  )
}
