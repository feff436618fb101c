#!/usr/bin/env node
// Checked before anything else is loaded: a native module built for a newer Node crashes on an old one
// instead of saying so. Plain syntax only, so that the old Node can parse this file.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `platformctl needs Node 22.18 or newer and this is ${process.versions.node}: install a current Node, or run it through "npx --package node@24 --package platformctl platformctl".\n`,
  )
  process.exit(2)
}

// Not imported: an import of a built-in module reads all of its properties, which loads what they need.
process.getBuiltinModule('node:module').enableCompileCache()
import('../dist/cli/main.js').then((cli) => cli.start())
