import { createHash } from 'node:crypto'
import { globSync, statSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import * as z from 'zod'
import type { Part } from './parts.ts'

const figure = z.number().nullable()

/** The fields of a benchmark's result file that the report uses. */
export const measuredSchema = z.object({
  title: z.string(),
  unit: z.string(),
  better: z.enum(['lower', 'higher']),
  series: z.array(
    z.object({
      name: z.string(),
      role: z.enum(['ours', 'floor', 'peer']),
      median: figure,
      values: z.array(z.number()),
    }),
  ),
  ratios: z.array(
    z.object({
      against: z.string(),
      median: figure,
      low: figure,
      high: figure,
      tooWide: z.boolean(),
      promised: z.number().optional(),
      kept: z.boolean().optional(),
    }),
  ),
  ratiosOf: z.enum(['ours', 'the others']).optional(),
  bound: z.object({ promised: z.number(), kept: z.boolean().optional() }).optional(),
})
export type Measured = z.infer<typeof measuredSchema>

const resultSchema = z.object({
  part: z.string(),
  /** A hash of the part's files, its command and the version of Node; see `keyOf`. */
  key: z.string(),
  commit: z.string(),
  /** ISO 8601. */
  began: z.string(),
  seconds: z.number(),
  /** The load of the machine when the part began. */
  load: z.number(),
  verdict: z.enum(['passed', 'failed']),
  /** Why it failed. */
  reason: z.string().optional(),
  /** The last lines that it printed: its figures, or what it said before it failed. */
  lines: z.array(z.string()),
  measured: measuredSchema.optional(),
})
export type PartResult = z.infer<typeof resultSchema>

/**
 * Gives the key of a part: it changes when a file's name or content, the command or the version of Node changes. Pass
 * the same `digests` for several parts to hash their shared files once.
 */
export async function keyOf(
  part: Part,
  root: string,
  digests = new Map<string, Promise<string>>(),
): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify([process.version, part.command, part.env ?? {}]))
  for (const input of part.inputs) {
    const digest = digests.get(input) ?? digestOf(root, input)
    digests.set(input, digest)
    hash.update(await digest)
  }
  return hash.digest('hex').slice(0, 16)
}

/** Hashes the names and contents of a file, or of all files in a folder. */
async function digestOf(root: string, input: string): Promise<string> {
  const hash = createHash('sha256')
  for (const file of filesOf(root, input).sort())
    hash.update(`\0${file}\0`).update(await readFile(path.join(root, file)))
  return hash.digest('hex')
}

function filesOf(root: string, input: string): string[] {
  if (statSync(path.join(root, input)).isFile()) return [input]
  return globSync(`${input}/**`, { cwd: root, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
}

const fileOf = (folder: string, part: string) => path.join(folder, `${part.replaceAll('/', '-')}.json`)

/** The part's last result, whatever code it is of; what cannot be read as one is none. */
export async function readResult(folder: string, part: string): Promise<PartResult | undefined> {
  try {
    return resultSchema.parse(JSON.parse(await readFile(fileOf(folder, part), 'utf8')))
  } catch {
    return undefined
  }
}

/** Writes a result atomically, because a half-written one would count as missing. */
export async function writeResult(folder: string, result: PartResult): Promise<void> {
  await mkdir(folder, { recursive: true })
  const file = fileOf(folder, result.part)
  await writeFile(`${file}.new`, `${JSON.stringify(result, null, 1)}\n`)
  await rename(`${file}.new`, file)
}

export async function dropResult(folder: string, part: string): Promise<void> {
  await rm(fileOf(folder, part), { force: true })
}
