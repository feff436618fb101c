import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import { yamlName } from '../../src/cli/deploy/subject.ts'
import { platformctl } from '../support/cli.ts'
import { emptyFolder, folderWith } from '../support/folder.ts'
import { command } from '../support/in-process.ts'
import { potteryFolder } from '../support/pottery.ts'

async function pottery() {
  const cwd = await emptyFolder()
  const folder = await potteryFolder(path.join(cwd, 'pottery'))
  const config = ['--config', 'pottery/platform.config.ts']
  return {
    cwd,
    folder,
    run: (words: string, more: readonly string[] = config) =>
      command(['deploy', ...words.split(' '), ...more], { cwd }),
    /** By a process of its own, which reads a definition that has changed. */
    anew: (words: string) => platformctl(['deploy', ...words.split(' '), ...config], { cwd }),
    made: (file: string) => readFile(path.join(folder, 'deploy', file), 'utf8'),
    put: (file: string, text: string) => writeFile(path.join(folder, file), text),
  }
}

const TARGETS = ['systemd', 'docker', 'compose', 'kubernetes']

test('init writes the files of a definition beside it, from any folder, and check finds nothing', async () => {
  const { run, made } = await pottery()
  for (const target of TARGETS) {
    const { exitCode, stdout, stderr } = await run(`init ${target}`)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^Töpferschule Lehmgrube, defined by .*\n(?:same .*\n)*written /)
    expect(stdout).toMatch(/Next: follow the first lines of pottery\/deploy\//)
  }
  expect((await run('check')).stdout).toMatch(/^.*(?:\nsame {5}pottery\/deploy\/\S+){11}$/)
  const dockerfile = await made('Dockerfile')
  for (const one of ['platform.config.ts', 'services.ts', 'mails', 'courses/erster-brand', 'logo.svg']) {
    expect(dockerfile).toContain(`COPY ${one} ${one}\n`)
    expect(await made('Dockerfile.dockerignore')).toContain(`!${one}\n`)
    expect(await made('systemd/platformctl.service')).toMatch(
      new RegExp(`^# .* cp -R --parents .*\\b${one} .*/srv/platform$`, 'm'),
    )
  }
  expect(await made('systemd/platformctl.service')).toContain(
    'daemon --config /srv/platform/platform.config.ts --env-file %d/env --data %S/platformctl\n',
  )
  for (const command of ['db backup', 'db verify'])
    expect(await made('systemd/platformctl-backup.service')).toContain(
      `/usr/bin/platformctl ${command} --config /srv/platform/platform.config.ts --data %S/platformctl`,
    )
  expect(await made('compose.secrets.yaml')).toMatch(
    / {2}shop:\n {4}secrets:\n(?: {6}- .*\n)*? {6}- SHOP_KEY\n/,
  )
  for (const file of ['compose.yaml', 'kubernetes/platform.yaml'])
    expect(await made(file)).toContain('  SHOP_URL: http://shop:4000\n')
})

test.each(['1e3', 'null', 'y'])('a platform named %s is text in YAML', async (name) => {
  const cwd = await folderWith({ 'platform.config.json': JSON.stringify({ name }) })
  for (const target of ['compose', 'kubernetes'])
    expect(await command(['deploy', 'init', target], { cwd })).toMatchObject({ exitCode: 0 })
  const read = (file: string) => readFile(path.join(cwd, 'deploy', file), 'utf8')
  expect(parse(await read('compose.yaml'), { version: '1.1', merge: true }).name).toBe(name)
  const [account] = parseAllDocuments(await read('kubernetes/platform.yaml'), { version: '1.1' })
  expect(account?.toJS().metadata.name).toBe(name)
})

test('a health path with a comma or braces stays one in the manifests', async () => {
  const web = { health: '/up,{now}$1' }
  const cwd = await folderWith({ 'platform.config.json': JSON.stringify({ services: { web } }) })
  expect(await command(['deploy', 'init', 'kubernetes'], { cwd })).toMatchObject({ exitCode: 0 })
  const made = await readFile(path.join(cwd, 'deploy/kubernetes/platform.yaml'), 'utf8')
  const paths = parseAllDocuments(made).map(
    (one) => one.toJS().spec?.template?.spec.containers[0].readinessProbe.httpGet.path,
  )
  expect(paths.filter(Boolean)).toEqual([web.health])
})

test.each(['123', '0x1f', 'no', 'on', 'off', 'TRUE', 'n', '2026-01-02'])(
  'the name %s is text in YAML',
  (name) => {
    expect(parse(`${yamlName(name)}: [${yamlName(name)}]`, { version: '1.1' })).toEqual({ [name]: [name] })
  },
)

test('a file that is there stays, and the printed command shows the difference', async () => {
  const { cwd, folder, run, made } = await pottery()
  await run('init compose')
  await writeFile(path.join(folder, 'deploy/compose.yaml'), 'mine\n')
  await rm(path.join(folder, 'deploy/compose.secrets.yaml'))
  for (const [words, state] of [
    ['check', 'missing'],
    ['init compose', 'written'],
  ]) {
    const { exitCode, stdout } = await run(String(words))
    expect(exitCode).toBe(1)
    expect(stdout).toContain(`${state}  pottery/deploy/compose.secrets.yaml`)
    const [, asked = ''] =
      /differs {2}pottery\/deploy\/compose\.yaml\n +(?:npx -- )?platformctl (.*)\n/.exec(stdout) ?? []
    const [words2 = '', rest = ''] = asked.split(' | ')
    const printed = await command(words2.split(' '), { cwd })
    expect(printed.stdout).toContain('\nservices:\n')
    const difference = await execa('sh', ['-c', rest], { cwd, input: `${printed.stdout}\n`, reject: false })
    expect(difference.stdout).toMatch(/^1,\d+c1\n|^1c1,\d+\n/)
  }
  expect(await made('compose.yaml')).toBe('mine\n')
  expect(await run('check --print compose.yml')).toMatchObject({
    exitCode: 2,
    stdout: '',
    stderr: expect.stringContaining('compose.yml is not one of these files: pottery/deploy/'),
  })
  const document = JSON.parse((await run('check --format json')).stdout) as {
    files: { file: string; state: string }[]
  }
  expect(document.files).toContainEqual({ file: path.join(folder, 'deploy/compose.yaml'), state: 'differs' })
})

test('check passes without the file of a witness, and reports one that was changed, and any other that is missing', async () => {
  const { cwd, folder, run } = await pottery()
  await run('init kubernetes')
  const file = path.join(folder, 'deploy/kubernetes/witness.yaml')
  const text = await readFile(file, 'utf8')
  await writeFile(file, text.replace('https://www.example.com', 'https://kiln.example'))
  expect(await run('check')).toMatchObject({
    exitCode: 1,
    stdout: expect.stringContaining('differs  pottery/deploy/kubernetes/witness.yaml'),
  })
  await rm(file)
  const { exitCode, stdout } = await run('check')
  expect([exitCode, stdout]).toEqual([0, expect.not.stringContaining('witness')])
  // Nor does the machine of a witness need the other files.
  await mkdir(path.join(cwd, 'watch'))
  await writeFile(path.join(cwd, 'watch/witness.yaml'), text)
  expect(await run('check --out watch')).toMatchObject({ exitCode: 0 })
  await run('init compose --out ops')
  const other = path.join(cwd, 'other.config.json')
  await writeFile(other, '{}')
  await writeFile(path.join(cwd, 'Dockerfile'), 'mine\n')
  expect((await run('init docker --out .', ['--config', other])).stdout).toContain(
    ` check --config ${other} --out . --print Dockerfile | diff Dockerfile -`,
  )
  await rm(path.join(cwd, 'ops/compose.secrets.yaml'))
  expect((await run('check --out ops')).exitCode).toBe(1)
  await writeFile(path.join(cwd, 'ops/compose.yaml'), 'mine\n')
  expect((await run('check --out ops')).stdout).toMatch(/check (?:.* )?--out ops --print/)
})

test('check tells of a change of the definition, and init again writes nothing', async () => {
  const { folder, run, anew, made, put } = await pottery()
  await run('init kubernetes')
  await put('services.ts', "export const shop = { shop: { port: 4100, address: 'SHOP_URL' } }\n")
  expect(await anew('check')).toMatchObject({
    exitCode: 1,
    stdout: expect.stringContaining('differs  pottery/deploy'),
  })
  const before = await made('kubernetes/platform.yaml')
  expect((await anew('init kubernetes')).exitCode).toBe(1)
  expect(await made('kubernetes/platform.yaml')).toBe(before)
  await rm(path.join(folder, 'deploy'), { recursive: true })
  expect(await run('check')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/there are no files to check: .*deploy init writes them/),
  })
})

test('without a definition the files are those of the default platform, in the folder that --out names', async () => {
  const cwd = await emptyFolder()
  const run = (words: string) => command(['deploy', ...words.split(' ')], { cwd })
  for (const target of TARGETS) {
    const made = await run(`init ${target} --out files`)
    expect(made).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('no definition found in') })
  }
  expect((await run('check --out files')).exitCode).toBe(0)
  expect(await readFile(path.join(cwd, 'files/compose.yaml'), 'utf8')).toContain(
    'dockerfile: files/Dockerfile\n',
  )
  expect(await readFile(path.join(cwd, 'files/platformctl.service'), 'utf8')).toContain(
    'platformctl daemon --env-file',
  )
})

test('with --out, from the working directory, the files there name the folder of the definition', async () => {
  const { cwd, folder, run } = await pottery()
  for (const out of ['pottery', '.', 'ops', 'pottery/ops/images', 'ops/images', 'o: p/#1', '@ops $1 #2']) {
    const made = await run('init compose', ['--config', 'pottery/platform.config.ts', '--out', out])
    expect(made).toMatchObject({ exitCode: 0 })
    const files = path.join(cwd, out)
    const { services } = parse(await readFile(path.join(files, 'compose.yaml'), 'utf8'), { merge: true })
    const { context, dockerfile } = services.web.build
    expect(path.resolve(files, context)).toBe(folder)
    // Compose reads two dollars as one.
    expect(path.resolve(folder, dockerfile.replaceAll('$$', '$'))).toBe(path.join(files, 'Dockerfile'))
  }
})

test('the commands in the files quote a folder for the shell, and its name adds no line to them', async () => {
  const cwd = await emptyFolder()
  const init = (out: string) => command(['deploy', 'init', 'compose', '--out', out], { cwd })
  expect(await init('my ops')).toMatchObject({ exitCode: 0 })
  for (const file of ['compose.yaml', 'compose.secrets.yaml', 'compose.witness.yaml'])
    expect(await readFile(path.join(cwd, 'my ops', file), 'utf8')).toContain(`-f 'my ops/${file}' `)
  expect(await readFile(path.join(cwd, 'my ops/Dockerfile'), 'utf8')).toContain("-f 'my ops/Dockerfile' ")
  expect(await init('ops\n    privileged: true')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/control character/),
  })
})

test('an image has each folder that the definition names once, whatever the beginning of its name', async () => {
  const folders = ['lessons', 'lessons-2', 'lessons/more']
  const courses = Object.fromEntries(folders.map((lessons, index) => [`c${index}`, { lessons }]))
  const definition = JSON.stringify({ preset: 'base', mails: 'less', courses })
  const lessons = ['less', ...folders].map((name) => [`${name}/1-clay.md`, ''])
  const cwd = await folderWith({ 'platform.config.json': definition, ...Object.fromEntries(lessons) })
  expect(await command(['deploy', 'init', 'docker'], { cwd })).toMatchObject({ exitCode: 0 })
  const dockerfile = await readFile(path.join(cwd, 'deploy/Dockerfile'), 'utf8')
  expect([...dockerfile.matchAll(/^COPY ([a-z]\S*) /gm)].map(([, name]) => name)).toEqual([
    `platformctl-${packageJson.version}.tgz`,
    ...['platform.config.json', 'less', 'lessons', 'lessons-2'],
  ])
})

test('an image has the modules that the definition imports, directly or not, once each', async () => {
  const { folder, made, put, run } = await pottery()
  await mkdir(path.join(folder, 'shop'))
  await put('services.ts', "export { shop } from './shop/shop.ts'\n")
  await put('shop/shop.ts', "import { port } from '../port.mts'\nexport const shop = { shop: { port } }\n")
  await put('port.mts', "import './services.ts'\nexport const port = 4000\n")
  expect(await run('init docker')).toMatchObject({ exitCode: 0 })
  const modules = ['port.mts', 'services.ts', 'shop/shop.ts']
  const copied = [...(await made('Dockerfile')).matchAll(/^COPY (\S+\.m?ts) /gm)].map(([, name]) => name)
  expect(copied.toSorted()).toEqual(['platform.config.ts', ...modules])
  for (const one of modules) expect(await made('Dockerfile.dockerignore')).toContain(`!${one}\n`)
})

test('a unit installs the packages that the lock file names, and those that the definition imports', async () => {
  const { folder, run, anew, made, put } = await pottery()
  const lock = (...names: string[]) => {
    const packages = names.map((name) => [
      `node_modules/${name}`,
      name === 'zod' ? {} : { resolved: `file:vendor/${name}-0.3.0.tgz` },
    ])
    return put('package-lock.json', JSON.stringify({ packages: Object.fromEntries(packages) }))
  }
  const unit = async (by = run) => {
    await rm(path.join(folder, 'deploy'), { recursive: true, force: true })
    expect(await by('init systemd')).toMatchObject({ exitCode: 0, stderr: '' })
    return await made('systemd/platformctl.service')
  }
  const copies = (files: string) => new RegExp(`^# .* cp -R --parents .* ${files} /srv/platform\n`, 'm')
  const installs =
    '#   (cd /srv/platform && npm ci --omit=dev --ignore-scripts)\n#   (cd /srv/platform && chmod '
  await lock('own-tools', 'zod')
  expect(await unit()).not.toContain('npm ci')
  await lock('platformctl', 'zod')
  const whole = await unit()
  expect(whole).toMatch(copies('package.json package-lock.json vendor/platformctl-0.3.0.tgz'))
  expect(whole).toContain(installs)
  // With platformctl as an executable or for the whole machine, the lock file does not name it.
  await lock('own-tools', 'zod')
  await mkdir(path.join(folder, 'node_modules/zod'), { recursive: true })
  await put('node_modules/zod/index.js', 'exports.z = {}\n')
  await put('port.mts', "import { z } from 'zod'\nexport const port = z ? 4000 : 0\n")
  await put(
    'services.ts',
    "import { port } from './port.mts'\nexport const shop = { shop: { port, address: 'SHOP_URL' } }\n",
  )
  const imported = await unit(anew)
  expect(imported).toMatch(copies('package.json package-lock.json vendor/own-tools-0.3.0.tgz'))
  expect(imported).toContain(installs)
})

test('where there is a lock file, images install what it names, with its tarballs', async () => {
  const { run, made, put } = await pottery()
  const lock = (platformctl: object) =>
    put(
      'package-lock.json',
      JSON.stringify({
        packages: {
          '': {},
          'node_modules/lint': { dev: true, resolved: 'file:vendor/lint-1.0.0.tgz' },
          'node_modules/own-tools': { dev: true, link: true, resolved: 'tools' },
          'node_modules/platformctl': platformctl,
        },
      }),
    )
  await lock({ resolved: 'file:vendor/platformctl-0.3.0.tgz' })
  await run('init docker')
  const dockerfile = await made('Dockerfile')
  expect(dockerfile).toContain(
    'COPY package.json package-lock.json vendor/platformctl-0.3.0.tgz ./\nRUN npm ci ',
  )
  expect(await made('Dockerfile.dockerignore')).toContain(
    '!package-lock.json\n!vendor/platformctl-0.3.0.tgz\n',
  )
  await lock({ resolved: 'file:../src/platformctl-0.3.0.tgz' })
  expect(await run('init docker')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('move it there, and run: npm install ./platformctl-0.3.0.tgz.'),
  })
  await lock({ link: true, resolved: '../clone' })
  expect(await run('init docker')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('npm pack') })
  await put('package-lock.json', '{')
  expect(await run('init docker')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('cannot be read'),
  })
  // Of a project that does not name platformctl, its tarball alone.
  await put('package-lock.json', '{ "packages": { "": {} } }')
  expect((await run('check --print pottery/deploy/Dockerfile')).stdout).toContain(
    `COPY platformctl-${packageJson.version}.tgz ./\nRUN npm install --omit=dev --ignore-scripts `,
  )
})

test.each([
  ['a folder outside', "mails: '../mails'", /\.\.\/mails is not in the folder of the definition/],
  ['its own folder', "mails: '.'", /names its own folder, which may hold secrets/],
  ['a name with a space', "mails: './our mails'", /our mails has a character .*: rename it/],
])('a definition that names %s is refused, and nothing is written', async (_, line, sentence) => {
  const { cwd, run } = await pottery()
  for (const name of ['mails', 'pottery/our mails']) await mkdir(path.join(cwd, name))
  const file = path.join(cwd, 'pottery/platform.config.ts')
  await writeFile(file, (await readFile(file, 'utf8')).replace("mails: './mails'", line))
  const { exitCode, stderr } = await run('init docker')
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(sentence) })
  expect(stderr.split('\n')).toHaveLength(1)
})
