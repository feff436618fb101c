import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { getAsset, getAssetKeys, getRawAsset } from 'node:sea'
import { pathToFileURL } from 'node:url'
import { EMBEDDED, type Embedded } from '../../src/core/embedded.ts'

/**
 * The first script of the executable: serves the package's modules and files from the executable itself, under paths
 * below its own, where no file can be. Definitions and what they import are on disk, as ever.
 */
const root = `${process.execPath}/`
const base = pathToFileURL(root).href
const assets = new Set(getAssetKeys())
const SQLITE = `${base}node_modules/better-sqlite3.js`

registerHooks({
  resolve(specifier, context, next) {
    const isOurs = context.parentURL?.startsWith(base) === true
    const url = specifier.startsWith(base)
      ? specifier
      : isOurs && specifier.startsWith('.')
        ? new URL(specifier, context.parentURL).href
        : `${base}node_modules/${specifier}.js`
    const isHere =
      (isOurs || specifier.startsWith(base)) && (url === SQLITE || assets.has(url.slice(base.length)))
    return isHere ? { url, format: 'module', shortCircuit: true } : next(specifier, context)
  },
  load(url, context, next) {
    if (!url.startsWith(base)) return next(url, context)
    const source = url === SQLITE ? `export default ${driver()}` : getAsset(url.slice(base.length), 'utf8')
    return { source, format: 'module', shortCircuit: true }
  },
})

const files: Embedded = {
  root: process.execPath,
  read: (file) => {
    const name = file.slice(root.length)
    return assets.has(name) ? new Uint8Array(getRawAsset(name)) : undefined
  },
  names: (folder) =>
    [...assets].filter((name) => path.dirname(root + name) === folder).map((name) => path.basename(name)),
  get driver() {
    return driver()
  },
}
Object.assign(globalThis, { [EMBEDDED]: files })

let addon: string | undefined

/**
 * An expression for any thread: all threads must have the same copy of SQLite, because a second one would drop the
 * first one's locks.
 */
function driver(): string {
  addon ??= mapAddon()
  const load = `(require) => {
    const [loaded, driver] = [{ exports: {} }, { exports: {} }]
    process.dlopen(loaded, '${addon}')
    const make = new Function('module', 'require', 'addon', require('node:sea').getAsset('better-sqlite3.cjs', 'utf8'))
    make(driver, require, loaded.exports)
    return driver.exports
  }`
  return `(${load})(process.getBuiltinModule('node:module').createRequire(process.execPath))`
}

/**
 * Writes the SQLite addon where a library may be loaded from, and gives the path of the open file, which has no name
 * any more: nobody can replace it, and nothing is left behind.
 */
function mapAddon(): string {
  const { RUNTIME_DIRECTORY, CACHE_DIRECTORY, HOME } = process.env
  const folders = [tmpdir(), '/dev/shm', '/var/tmp', RUNTIME_DIRECTORY, CACHE_DIRECTORY, HOME]
  for (const folder of folders) {
    if (!folder?.startsWith('/')) continue
    let scratch: string | undefined
    try {
      scratch = mkdtempSync(path.join(folder, 'platformctl-'))
      const file = path.join(scratch, 'addon.node')
      writeFileSync(file, new Uint8Array(getRawAsset('better-sqlite3.node')), { mode: 0o500 })
      const descriptor = openSync(file, 'r')
      const named = `/proc/self/fd/${descriptor}`
      try {
        process.dlopen({ exports: {} }, named)
        return named
      } catch {
        closeSync(descriptor)
      }
    } catch {
      // Read-only, full, or mounted without the right to run what is in it: the next folder.
    } finally {
      if (scratch) rmSync(scratch, { recursive: true, force: true })
    }
  }
  process.stderr.write(
    `platformctl: SQLite cannot be loaded from ${folders.filter(Boolean).join(', ')}: they are full, read-only or mounted noexec. Set TMPDIR to a folder that is not.\n`,
  )
  process.exit(2)
}

createRequire(process.execPath)(`${base}bin/platformctl.js`)
