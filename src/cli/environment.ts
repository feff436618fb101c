import fs from 'node:fs'
import path from 'node:path'
import type { Dialect } from '../core/env/dialects/dialect.ts'
import { type Assignment, parseEnvFile, readsAlike } from '../core/env/reader.ts'
import { fileNameOf, readSecretFiles } from '../core/env/secret-files.ts'
import type { Origin } from '../core/env/validate.ts'
import { codeOf, faultOf } from '../core/errors.ts'
import type { Finding } from '../core/finding.ts'
import { attempt } from '../core/is-record.ts'
import { useProxies } from '../core/network/proxy.ts'
import { CommandError, type Context, wrongUsage } from './context.ts'

/** More than any env file holds; beyond it somebody named the wrong file. */
const LARGEST_ENV_FILE = { bytes: 4 * 1024 * 1024, what: 'an env file' }
export const LARGEST_LIST = { bytes: 128 * 1024 * 1024, what: 'a list of people' }

const UNWRITTEN_MS = 5000
const POLL_MS = 20

interface LoadEnvironmentOptions {
  /** The process's environment too, as at boot; false looks at the files alone. */
  readonly withProcess?: boolean
  readonly dialect?: Dialect | undefined
  /** Warn where these readers would disagree; those of a deployment when absent. */
  readonly readers?: readonly Dialect[] | undefined
  /** Report an unusable secret file as a finding; otherwise it is a CommandError. */
  readonly reportsSecretFiles?: boolean
}

export type LoadedEnvironment = Awaited<ReturnType<typeof loadEnvironment>>

/**
 * The process's environment and the files named, or those of the daemon that is used if none is. A later file wins over an earlier one; the process's
 * environment wins over every file, as with Node's own --env-file. Unreadable input is a CommandError, exit 2.
 */
export async function loadEnvironment(
  context: Context,
  named: readonly string[],
  { withProcess = true, dialect, readers, reportsSecretFiles = false }: LoadEnvironmentOptions = {},
) {
  const files = named.length > 0 || !withProcess ? named : (context.daemon?.envFiles ?? [])
  const findings: Finding[] = []
  const placed = new Map<string, Assignment>()
  for (const file of files) {
    const text = await readTextFile(context, file)
    const read = parseEnvFile(context.platform.contract, text, file)
    // One by one: a file has more lines than a call has arguments.
    for (const finding of read.findings) findings.push(finding)
    if (!readsAlike(text, read.assignments)) {
      const { portability } = await import('../core/env/portability.ts')
      const { contract } = context.platform
      for (const finding of portability(contract, text, file, read.assignments, readers))
        findings.push(finding)
    }
    const assignments = dialect && (await assignedAs(context, dialect, text, file, read.assignments))
    for (const assignment of assignments ?? read.assignments) {
      const earlier = placed.get(assignment.name)
      if (earlier && earlier.location.file !== file)
        findings.push(shadowed(context, earlier, `line ${assignment.location.line} of ${file}`))
      placed.set(assignment.name, assignment)
    }
  }
  const values = new Map([...placed].map(([name, { value }]) => [name, value]))
  if (withProcess) {
    for (const [name, value] of Object.entries(context.env)) {
      if (value === undefined || value.trim() === '') continue
      const inFile = placed.get(name)
      if (inFile && inFile.value !== value)
        findings.push(shadowed(context, inFile, 'the process environment'))
      if (inFile) placed.delete(name)
      values.set(name, value)
    }
  }
  const origin: Origin = (name) => {
    const assignment = placed.get(name) ?? placed.get(fileNameOf(name))
    return assignment && { location: assignment.location, excerpt: assignment.excerpt }
  }
  const secrets = readSecretFiles(
    context.platform.contract,
    // Built entry by entry, because a file may well contain the name __proto__.
    Object.assign(Object.create(null) as Record<string, string>, Object.fromEntries(values)),
    context.cwd,
  )
  const [unusable] = secrets.findings
  if (unusable !== undefined && !reportsSecretFiles) throw wrongUsage(`${unusable.cause} ${unusable.fix}`)
  if (withProcess) useProxies(secrets.env)
  const ofSecrets = secrets.findings.map((finding) => ({
    ...finding,
    ...finding.present.map(origin).find((place) => place !== undefined),
  }))
  // The findings are about the files themselves: unreadable lines, duplicates, shadowed values.
  return { env: secrets.env, findings: [...findings, ...ofSecrets], origin, secretFiles: secrets.files }
}

/** The values as another reader sees them, each where our own reader found its name. */
async function assignedAs(
  context: Context,
  dialect: Dialect,
  text: string,
  file: string,
  found: readonly Assignment[],
): Promise<readonly Assignment[]> {
  const { readAs } = await import('../core/env/dialects/read.ts')
  const { values, rejected, rejectedLine = 1 } = readAs(dialect, text, context.env)
  if (rejected)
    throw wrongUsage(
      `${dialect} would refuse ${file} because of line ${rejectedLine}: platformctl env dialects ${file} shows what each reader makes of it.`,
    )
  const placed = new Map(found.map((assignment) => [assignment.name, assignment]))
  const start = { location: { file, line: 1, column: 1 }, excerpt: '' }
  return [...values].map(([name, value]) => ({ ...(placed.get(name) ?? start), name, value }))
}

/** A finding about files as a whole, or about variables in them. */
export const fileFinding = (
  finding: Omit<Finding, 'group' | 'present' | 'missing'> & Partial<Pick<Finding, 'group' | 'present'>>,
): Finding => ({ group: 'file', present: [], missing: [], ...finding })

function shadowed(context: Context, { name, location, excerpt }: Assignment, winner: string): Finding {
  return fileFinding({
    id: 'shadowed-value',
    severity: 'warning',
    services: context.platform.contract.services,
    present: [name],
    cause: `This value of ${name} is not used: ${winner} sets it too and wins.`,
    fix: 'Keep one of the two.',
    location,
    excerpt,
  })
}

export async function readTextFile(context: Context, file: string, largest = LARGEST_ENV_FILE) {
  const bytes = await readWholeFile(context, file, largest.bytes)
  if (bytes === undefined)
    throw wrongUsage(
      `${file} is larger than ${largest.what} can be (${largest.bytes / 1024 / 1024} MB): is it the right file?`,
    )
  // UTF-16, as PowerShell 5 writes it for `>` and as Notepad's "Unicode" does.
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    throw wrongUsage(`${file} is UTF-16: save it as UTF-8.`)
  if (bytes.includes(0)) throw wrongUsage(`${file} is a binary file: name a text file.`)
  const text = attempt(() => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  if (text === undefined) throw wrongUsage(`${file} is not valid UTF-8: save it as UTF-8.`)
  return text
}

/** Reads in this thread: nothing else runs yet, and starting the thread pool takes longer. Undefined beyond `most` bytes. */
export async function readWholeFile(context: Context, file: string, most: number) {
  const full = path.resolve(context.cwd, file)
  try {
    const stats = fs.statSync(full)
    if (!stats.isFile()) return await readPipe(context, full, file, most)
    return stats.size > most ? undefined : fs.readFileSync(full)
  } catch (error) {
    if (error instanceof CommandError) throw error
    const code = codeOf(error)
    const why = READ_REFUSALS[code] ?? `the system says ${code || 'no more'}`
    // What was given in place of a file may be the secret itself.
    const named = file.replace(/^(AGE-SECRET-KEY-|[A-Z]\w*=).+/s, '$1…')
    throw wrongUsage(`cannot read ${named}: ${why}.`)
  }
}

/** A pipe or a device to its end; undefined if that is too much. A signal ends the wait, and a pipe without a writer times out. */
async function readPipe({ clock, signal }: Context, full: string, file: string, most: number) {
  // Windows has neither O_NONBLOCK nor named pipes in its file system.
  const descriptor = fs.openSync(full, fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0))
  const isFifo = fs.fstatSync(descriptor).isFIFO()
  const givenUpAt = clock.monotonic() + UNWRITTEN_MS
  try {
    const parts: Buffer[] = []
    for (let total = 0; total <= most; ) {
      const part = Buffer.alloc(65_536)
      const count = readReady(descriptor, part)
      if (count === undefined || (count === 0 && total === 0 && isFifo)) {
        // An empty pipe may only mean that its writer has not opened it yet.
        const unwritten = count === 0 && clock.monotonic() > givenUpAt
        if (signal.aborted || unwritten)
          throw wrongUsage(`cannot read ${file}: nobody has written to this pipe.`)
        await clock.sleep(POLL_MS, signal).catch(() => {})
        continue
      }
      if (count === 0) return Buffer.concat(parts)
      parts.push(part.subarray(0, count))
      total += count
    }
    return undefined
  } finally {
    fs.closeSync(descriptor)
  }
}

/** Undefined: there is nothing yet. */
function readReady(descriptor: number, part: Buffer): number | undefined {
  try {
    return fs.readSync(descriptor, part)
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return undefined
    throw error
  }
}

const READ_REFUSALS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file; check the path',
  EACCES: 'permission denied; check who owns it',
  EPERM: 'permission denied; check who owns it',
  EISDIR: 'it is a folder; name a file',
}

/** Ends the command if this user may not read a file. A file that is not there is the caller's to report. */
export function assertNotDenied(file: string): void {
  const code = faultOf(() => fs.accessSync(file, fs.constants.R_OK))
  if (code === undefined || code === 'ENOENT' || code === 'ENOTDIR') return
  throw wrongUsage(`${file} cannot be opened (${code}): check its owner, and run this as the daemon’s user.`)
}
