import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import { shellWord } from '../../core/daemon-record.ts'
import { attempt } from '../../core/is-record.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import type { Service } from '../../core/service.ts'
import { learning } from '../../presets/learning/platform.ts'
import { wrongUsage } from '../context.ts'

/** What deployment files are made from. Paths start at the definition's folder and have slashes. */
export type Subject = ReturnType<typeof describe> & {
  /** Absent for the default platform. */
  readonly definition?: string
}

/** Where the files are from the definition's folder (`folder`, with a slash), and that from them (`up`); empty for the same. */
export type Places = Readonly<Record<'folder' | 'up', string>>

export interface DeployFile {
  /** From the folder of the files. */
  readonly path: string
  readonly text: string
  /** Of another machine, or of none: where it is not there, `check` does not miss it. */
  readonly optional?: true
}

/** A witness: its port, and its arguments for the operator to edit. */
export const WITNESS = {
  port: 3100,
  words: ['witness', '--platform', 'https://www.example.com', '--name', 'vienna'],
} as const

/** The secrets of the engine that an operator makes and that need nothing else. */
const MADE = ['EMAIL_DISPATCH_SECRET', 'EMAIL_LINK_SECRET', 'HEALTH_DEEP_TOKEN']

/** Reads what there is to deploy; a CommandError if a Dockerfile could not copy it. */
export function readSubject(platform: ResolvedPlatform, folder: string): Subject {
  const { definition } = platform
  const modules = definition === undefined ? [] : withImports(definition.file)
  const files = [...modules, ...(definition?.assets ?? [])]
  const sources = [...new Set(files.map((file) => inside(folder, file)))]
  const isImporting = modules.some((file) => MODULE.test(file) && PACKAGE.test(readFileSync(file, 'utf8')))
  return {
    ...describe(platform),
    ...(definition && { definition: path.basename(definition.file) }),
    // A folder holds what is in it.
    sources: sources.filter((one) => !sources.some((other) => one.startsWith(`${other}/`))),
    ...(/^\/(?:srv|opt)\/./.test(folder) && { serverFolder: folder }),
    ...packagesIn(folder, isImporting),
  }
}

/** The part that depends on no file. */
export function describe(platform: ResolvedPlatform) {
  const { contract, name, definition } = platform
  const own = platform.services.flatMap(({ port, ...service }) =>
    port === undefined ? [] : [{ ...service, port }],
  )
  const reads = (service: Service, variable: string) =>
    contract.find(variable)?.services.includes(service) === true
  const secrets = contract.variables
    .filter((one) => one.secret && (MADE.includes(one.name) || !learning.contract.find(one.name)))
    .map((one) => one.name)
  const slug = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 30)
    .replaceAll(/^-|-$/g, '')
  return {
    /** For images, volumes and secrets: `kiln-school`. */
    name: (definition && slug) || 'platform',
    /** The definition, and the files and folders that it names or imports. */
    sources: [] as readonly string[],
    services: own.map(({ name, port, health }) => ({
      name,
      port,
      health,
      /** Variables in which it looks for the other services, with their addresses between containers. */
      addresses: own.flatMap((other) => {
        // Browsers see the others.
        const inner = other.address?.filter((one) => !one.startsWith('NEXT_PUBLIC_')) ?? []
        const variable = inner.find((one) => reads(name, one))
        const isOther = other.name !== name && variable !== undefined
        return isOther ? [[variable, `http://${other.name}:${other.port}`] as const] : []
      }),
      secrets: secrets.filter((one) => reads(name, one)),
    })),
    /** The folder of the definition on a server with systemd. */
    serverFolder: '/srv/platform',
    /** Files that npm installs from, besides the registry. */
    tarballs: [`platformctl-${packageJson.version}.tgz`] as readonly string[],
    /** Whether package-lock.json names everything to install; otherwise the tarball of platformctl is installed alone. */
    isLocked: false,
    /** What npm ci reads beside the definition; empty where the definition needs no package of its own. */
    manifests: [] as readonly string[],
  }
}

const MODULE = /\.[cm]?[jt]s$/
/** An import of a package other than platformctl, which is installed anyway. */
const PACKAGE = /(?:from|import)[\s(]*['"](?!\.|node:|platformctl['"/])/

/** A definition and the files of its own that it imports, directly or not. */
function withImports(file: string, found = new Set<string>()): readonly string[] {
  if (found.has(file) || !existsSync(file)) return [...found]
  found.add(file)
  if (MODULE.test(file))
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
      /(?:from|import)[\s(]*['"](\.[^'"]+)['"]/g,
    ))
      withImports(path.resolve(path.dirname(file), name), found)
  return [...found]
}

/** A path as a Dockerfile, a unit, a shell and YAML can name it without quoting. */
const PLAIN = /^(?!-|\.\.(?:\/|$))[\p{L}\p{N}_.@+/-]+$/u

function inside(folder: string, file: string, next = ''): string {
  const name = path.relative(folder, file).replaceAll(path.sep, '/')
  if (name === '')
    throw wrongUsage(
      'the definition names its own folder, which may hold secrets: move those files into a folder of their own.',
    )
  const why = name.startsWith('..')
    ? `is not in the folder of the definition, which is what is deployed: move it there${next}`
    : 'has a character that deployment files would have to quote: rename it'
  if (!PLAIN.test(name)) throw wrongUsage(`${name} ${why}.`)
  return name
}

/** A name or path in a YAML file, quoted where YAML would read something else. */
export const yamlName = (name: string) =>
  /^(?:\d.*|y|yes|n|no|on|off|true|false|null|@.*|.*[^\w.@+/-].*)$/is.test(name) ? JSON.stringify(name) : name

type Packages = Record<string, { resolved?: string; link?: boolean; dev?: boolean }>

function packagesIn(folder: string, isImporting: boolean) {
  const file = path.join(folder, 'package-lock.json')
  if (!existsSync(file)) return {}
  const lock = attempt(() => JSON.parse(readFileSync(file, 'utf8')) as { packages?: Packages })
  if (lock === undefined) throw wrongUsage(`${file} cannot be read: npm install writes it anew.`)
  const { packages = {} } = lock
  const isLocked = packages['node_modules/platformctl'] !== undefined
  if (!isLocked && !isImporting) return {}
  const needed = Object.entries(packages).filter(([, one]) => !one.dev)
  const linked = needed.find(([, one]) => one.link)
  if (linked)
    throw wrongUsage(
      `package-lock.json links ${linked[0]} to ${linked[1].resolved}, which is not in an image: run npm pack there, then npm install the tarball here.`,
    )
  const tarballs = needed.flatMap(([, { resolved = '' }]) => {
    if (!resolved.startsWith('file:')) return []
    const file = path.resolve(folder, resolved.slice('file:'.length))
    return [inside(folder, file, `, and run: npm install ${shellWord(`./${path.basename(file)}`)}`)]
  })
  const manifests = ['package.json', 'package-lock.json', ...tarballs]
  return isLocked ? { tarballs, isLocked, manifests } : { manifests }
}
