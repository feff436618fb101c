import { existsSync, fstatSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { codeOf } from '../errors.ts'
import type { Finding } from '../finding.ts'
import { READ_FAULTS, withFile } from '../regular-file.ts'
import type { Contract, Variable } from './contract.ts'
import { type Environment, rawValue } from './settings.ts'

/** More than any secret has; beyond it the variable names the wrong file. */
const LARGEST_SECRET_BYTES = 64 * 1024

/** The name of the variable whose value is the path of a file with this secret, as Docker and Kubernetes mount them. */
export const fileNameOf = (name: string): string => `${name}_FILE`

/** The secret that is read from a file when a variable of this name holds a path. */
export function secretBehind(contract: Contract, name: string): Variable | undefined {
  const variable = name.endsWith('_FILE') ? contract.find(name.slice(0, -'_FILE'.length)) : undefined
  return variable?.secret ? variable : undefined
}

/** The environment with the secrets of NAME_FILE variables, and an error for each that cannot be used. */
export function readSecretFiles(contract: Contract, env: Environment, folder: string) {
  const named = Object.keys(env).flatMap((name) => {
    const variable = secretBehind(contract, name)
    const file = rawValue(env, name)
    // A variable of the platform may itself end in _FILE.
    return variable === undefined || file === undefined || contract.find(name)
      ? []
      : [{ variable, name, file }]
  })
  if (named.length === 0) return { env, findings: [], files: [] }
  const values = new Map(Object.entries(env))
  const findings: Finding[] = []
  const files: string[] = []
  for (const { variable, name, file } of named) {
    const { name: twin, services, group } = variable
    const common = { severity: 'error', services, group, missing: [] } as const
    if (rawValue(env, twin) !== undefined) {
      const cause = `${twin} and ${name} are both set, and they may hold different secrets.`
      const fix = 'Keep one of the two.'
      findings.push({ id: 'secret-set-twice', ...common, present: [twin, name], cause, fix })
      continue
    }
    const full = path.resolve(folder, file)
    const read = readSecret(full)
    if ('reason' in read) {
      // The path may itself be a secret, set here by mistake: don't repeat that.
      const place = read.found || looksLikePath(file) ? file : 'The file'
      const cause = `${place}, which ${name} names, ${read.reason}.`
      const fix = `Set ${name} to the path of a file that holds the secret, or remove it.`
      findings.push({ id: 'unreadable-secret-file', ...common, present: [name], cause, fix })
      continue
    }
    files.push(full)
    values.set(twin, read.value)
    values.delete(name)
  }
  // A file may well contain the name __proto__.
  return {
    env: Object.assign(Object.create(null) as Record<string, string | undefined>, Object.fromEntries(values)),
    findings,
    /** Absolute paths of the files that were read. */
    files,
  }
}

function readSecret(file: string) {
  try {
    const bytes = withFile(file, (descriptor) =>
      fstatSync(descriptor).size > LARGEST_SECRET_BYTES ? undefined : readFileSync(descriptor),
    )
    if (bytes === undefined)
      return { reason: `is larger than ${LARGEST_SECRET_BYTES / 1024} KB`, found: true }
    const value = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
    if (value.includes('\0')) return { reason: 'is not a text file', found: true }
    return value.trim() === '' ? { reason: 'is empty', found: true } : { value }
  } catch (error) {
    const code = codeOf(error)
    const found = /^(?:EACCES|EFTYPE|EISDIR|ERR_ENCODING.*)$/.test(code)
    return { reason: READ_FAULTS[code] ?? 'cannot be read', found }
  }
}

/** Base64 may begin with a slash and hold others: what could be that is a path if its first folder is there. */
const looksLikePath = (file: string) =>
  /^(?:\.{0,2}[\\/]|[A-Za-z]:\\)[\w.-]+[\\/]/.test(file) &&
  (!/^\/[\w+/-]+=*$/.test(file) || existsSync(file.split('/', 2).join('/')))
