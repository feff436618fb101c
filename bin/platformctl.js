#!/usr/bin/env sh
':' //; exec node -- "$0" "$@"
// The line above is a shell command and a JavaScript string with a comment. Node reads --env-file and obeys its
// NODE_OPTIONS even behind a script's name, and only `--` keeps it from that; `env -S` is unknown to BusyBox.

// Checked before anything else is loaded: a native module built for a newer Node crashes on an old one
// instead of saying so. Plain syntax only, so that the old Node can parse this file.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `platformctl needs Node 22.18 or newer and this is ${process.versions.node}: install a current Node, or run it through "npx --package node@24 --package platformctl platformctl".\n`,
  )
  process.exit(2)
}

// Built-in modules are not imported: an import reads all of their properties, which loads what they need.
const cache = privateCacheFolder(process.env, process.getBuiltinModule('node:fs'))
if (cache !== undefined) process.getBuiltinModule('node:module').enableCompileCache?.(cache)
import('../dist/cli/main.js').then((cli) => cli.start())

/**
 * The folder for V8's compile cache, whose content Node runs; undefined (no cache) unless nobody but this user and
 * root can write to it or replace it. Node's own default is a name in the shared temporary folder, which any local
 * user may create first.
 */
function privateCacheFolder(env, fs) {
  const windows = process.platform === 'win32'
  const base = (windows ? env.LOCALAPPDATA : env.XDG_CACHE_HOME || env.HOME) || ''
  if (!/^(?:\/|[a-z]:[\\/])/i.test(base)) return undefined
  const folder = `${base}/${windows || env.XDG_CACHE_HOME ? '' : '.cache/'}platformctl`
  try {
    // Windows has no owner or mode to look at; its profile folders belong to their user.
    if (!windows && !isPrivate(fs, base, 0o022)) return undefined
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    return windows || isPrivate(fs, folder, 0o077) ? folder : undefined
  } catch {
    return undefined
  }
}

/** Does the folder belong to this user, with none of the rights `denied`, below folders that others cannot rename? */
function isPrivate(fs, folder, denied) {
  const user = process.geteuid()
  let path = fs.realpathSync.native(folder)
  const { uid, mode } = fs.statSync(path)
  if (uid !== user || (mode & denied) !== 0) return false
  while (path !== '') {
    path = path.slice(0, path.lastIndexOf('/'))
    const above = fs.statSync(path || '/')
    // Others may write where the sticky bit keeps them from renaming what is not theirs.
    const open = (above.mode & 0o022) !== 0 && (above.mode & 0o1000) === 0
    if ((above.uid !== user && above.uid !== 0) || open) return false
  }
  return true
}
