import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import packageJson from '../package.json' with { type: 'json' }
import { describe } from '../src/cli/deploy/subject.ts'
import { systemdFiles } from '../src/cli/deploy/systemd.ts'
import { exampleFile } from '../src/core/env/schema.ts'
import { learning } from '../src/presets/learning/platform.ts'
import { optionsOf } from './options.ts'

const USAGE = `npm run release
  build/release: what a release attaches. The package as npm packs it, the executable in an archive and as a Debian
  package with its units, what both are made of (CycloneDX), and the checksums of all.`
optionsOf(USAGE, { options: {} })

const root = fileURLToPath(new URL('..', import.meta.url))
const out = `${root}build/release`
const { version, description } = packageJson
const run = (command: string, ...args: readonly string[]) =>
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })

run('npm', 'pack', '--silent', '--pack-destination', out)
run(process.execPath, 'scripts/executable.ts')

const bom = JSON.parse(readFileSync(`${root}dist/sbom.cdx.json`, 'utf8')) as { components: object[] }
const node = process.versions.node
bom.components.push({
  type: 'platform',
  name: 'node',
  version: node,
  purl: `pkg:github/nodejs/node@v${node}`,
})
writeFileSync(`${out}/sbom.cdx.json`, `${JSON.stringify(bom)}\n`)

/** What an operator reads beside the program. */
const READ = [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  'deploy/proxy',
  'deploy/offsite',
  'build/THIRD-PARTY-NOTICES.txt',
]
const copyTo = (folder: string) => {
  for (const one of READ) cpSync(root + one, `${folder}/${one.split('/').at(-1)}`, { recursive: true })
}
const archive = `platformctl-${version}-linux-${process.arch}`
const unpacked = `${root}build/${archive}`
rmSync(unpacked, { recursive: true, force: true })
mkdirSync(unpacked)
cpSync(`${root}build/platformctl`, `${unpacked}/platformctl`)
copyTo(unpacked)
run('tar', '-czf', `${out}/${archive}.tar.gz`, '--owner=0', '--group=0', '-C', `${root}build`, archive)

const architecture = { x64: 'amd64', arm64: 'arm64' }[process.arch as string] ?? process.arch
const debian = `${root}build/debian`
rmSync(debian, { recursive: true, force: true })
const put = (file: string, text: string, mode = 0o644) => {
  mkdirSync(`${debian}/${file.slice(0, file.lastIndexOf('/'))}`, { recursive: true })
  writeFileSync(`${debian}/${file}`, text, { mode })
}
put(
  'DEBIAN/control',
  `Package: platformctl
Version: ${version}
Architecture: ${architecture}
Maintainer: The platformctl authors <platformctl@localhost>
Depends: libc6 (>= 2.28), libstdc++6, libgcc-s1
Recommends: systemd
Section: admin
Priority: optional
Description: ${description}
`,
)
put('DEBIAN/conffiles', '/etc/platformctl/env\n')
const systemctl = '[ ! -d /run/systemd/system ] || systemctl'
put(
  'DEBIAN/postinst',
  `#!/bin/sh -e\n${systemctl} daemon-reload\n[ -z "$2" ] || ${systemctl} try-restart platformctl.service\n`,
  0o755,
)
put(
  'DEBIAN/prerm',
  `#!/bin/sh -e\n[ "$1" != remove ] || ${systemctl} disable --now platformctl.service platformctl-backup.timer\n`,
  0o755,
)
put('etc/platformctl/env', exampleFile(learning.contract), 0o600)
for (const { path: name, text, optional } of systemdFiles(describe(learning)))
  if (!optional) put(`usr/lib/systemd/system/${name}`, text)
cpSync(`${root}man/platformctl.1`, `${debian}/usr/share/man/man1/platformctl.1`)
cpSync(`${root}build/platformctl`, `${debian}/usr/bin/platformctl`)
copyTo(`${debian}/usr/share/doc/platformctl`)
run(
  'dpkg-deb',
  '--root-owner-group',
  '-Zzstd',
  '--build',
  debian,
  `${out}/platformctl_${version}_${architecture}.deb`,
)

const sums = readdirSync(out).map(
  (file) =>
    `${createHash('sha256')
      .update(readFileSync(`${out}/${file}`))
      .digest('hex')}  ${file}\n`,
)
writeFileSync(`${out}/SHA256SUMS`, sums.join(''))
console.log(sums.join(''))
