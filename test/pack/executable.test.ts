import { existsSync, globSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { platformctl, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { potteryFolder } from '../support/pottery.ts'
import { hasProgram } from '../support/programs.ts'
import { postgresServer } from '../support/stores.ts'

vi.setConfig({ testTimeout: 60_000 })
const root = fileURLToPath(new URL('../..', import.meta.url))
// Away from the clone, whose node_modules it would find.
const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-executable-'))
const program = path.join(folder, 'usr/bin/platformctl')
const released = (pattern: string) => {
  const [file = ''] = globSync(pattern, { cwd: path.join(root, 'build/release') })
  return path.join(root, 'build/release', file)
}
const isRoot = hasProgram(['unshare', '--mount', 'setpriv', '--version'], 'util-linux, and be root')

beforeAll(async () => {
  await execa(process.execPath, ['scripts/release.ts'], { cwd: root })
  await execa('dpkg-deb', ['--extract', released(`platformctl_${packageJson.version}_*.deb`), folder])
  await chmod(folder, 0o755)
}, 400_000)
afterAll(() => rm(folder, { recursive: true }))

/** A machine without Node: nothing is on PATH, and temporary files have a folder of their own. */
async function machine() {
  const cwd = await emptyFolder()
  const temporary = path.join(cwd, 'tmp')
  await mkdir(temporary)
  const run = { cwd, program, env: { PATH: '/nonexistent', TMPDIR: temporary, HOME: cwd } }
  return {
    cwd,
    temporary,
    env: run.env,
    run: (words: string) => platformctl(words.split(' '), run),
    start: async (words: string, services?: readonly string[]) => {
      const daemon = await startDaemon(words.split(' '), { ...run, ...(services && { services }) })
      onTestFinished(async () => void (await daemon.stop()))
      return daemon
    },
    put: (file: string, text: string) => writeFile(path.join(cwd, file), text),
  }
}

test('says its version, prints a runbook, and asks for no Node', async () => {
  const { run } = await machine()
  expect(await run('--version')).toEqual({ exitCode: 0, stdout: packageJson.version, stderr: '' })
  expect((await run('runbook mail-refused')).stdout).toBe(
    (await readFile(path.join(root, 'runbooks/mail-refused.md'), 'utf8')).trimEnd(),
  )
  expect((await run('preflight')).exitCode).toBe(0)
})

test('a course of one’s own goes from the first command to a lesson in the inbox, and into a backup and back', async () => {
  const { cwd, temporary, run, start, put } = await machine()
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const arrived = (text: RegExp) => inbox.waitFor((mail) => text.test(mail.text), AbortSignal.timeout(20_000))
  expect((await run('init --course ton --language de')).exitCode).toBe(0)
  await put('courses/ton/1-welcome.md', '---\nsubject: Der Ton\n---\n# Der Ton\n\nKneten.\n')
  await put(
    '.env',
    `NEXT_PUBLIC_SITE_URL=http://127.0.0.1:3000\nMAILER_SMTP_URL=${inbox.smtpUrl}\nMAILER_FROM=Schule <post@schule.example>\nEMAIL_DISPATCH_SECRET=a-long-secret-of-the-school-4711\n`,
  )
  expect((await run('preflight --env-file .env')).stdout).toContain('defined by')
  expect((await run('email lint')).stdout).toContain('0 errors')

  const { urls, stop } = await start('--env-file .env --data data --no-schedule', ['web'])
  const answer = await fetch(`${urls.web}/api/email/subscribe`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"email":"ada@example.com"}',
  })
  expect(await answer.json()).toMatchObject({ sent: true })
  const link = /https?:\/\/[^/]+(\/\S*confirm\S*)/.exec((await arrived(/confirm/)).text)?.[1] ?? ''
  expect((await fetch(urls.web + link, { method: 'POST' })).status).toBe(200)
  expect((await run(`dispatch --env-file .env --url ${urls.web}`)).exitCode).toBe(0)
  const lesson = await arrived(/Kneten\./)
  expect(lesson).toMatchObject({ subject: 'Der Ton', html: expect.stringContaining('lang="de"') })
  expect((await (await fetch(`${urls.web}/insights`)).text()).includes('<script type="module"')).toBe(true)

  expect((await run('status --data data')).stdout).toContain('defined by')
  const backup = 'db backup b.sqlite.zst --data data'
  expect(await run(backup)).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await stop()).toBe(0)
  const restored = await run('db restore b.sqlite.zst --data other --journal data/platform-journal.jsonl')
  expect(restored).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('subscription 1') })
  expect((await run('db verify --data other')).stdout).toContain('1 subscription is consistent')
  expect(await readdir(temporary)).toEqual([])
  expect((await readdir(cwd)).sort()).toContain('b.sqlite.zst')
})

test('definitions of every form are read, with a brand for the package’s own mails', async () => {
  const { cwd, run, put } = await machine()
  await potteryFolder(cwd)
  expect((await run('email build')).stdout).toMatch(/^\d+ mails in /)
  const body = "definePlatform({ preset: 'base', name: 'Kiln School' })"
  await put(
    'awaits.mts',
    `import { definePlatform } from 'platformctl/config'\nexport default await Promise.resolve(${body})\n`,
  )
  await put(
    'required.cjs',
    `const { definePlatform } = require('platformctl/config')\nmodule.exports = ${body}\n`,
  )
  await put('plain.json', '{ "preset": "base", "name": "Kiln School" }')
  for (const file of ['awaits.mts', 'required.cjs', 'plain.json'])
    expect(await run(`preflight --config ${file}`)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining(`Kiln School, defined by ${path.join(cwd, file)}`),
    })
  expect((await run('email lint')).exitCode).toBe(0)
})

test('env files are read by us and not by Node, which would run the code that they name', async () => {
  const { cwd, run, put } = await machine()
  await put('code.cjs', "console.log('run')\n")
  await put('.env', `NODE_OPTIONS=--require=${path.join(cwd, 'code.cjs')}\nMAILER_FROM=post@schule.example\n`)
  for (const option of ['--env-file .env', '--env-file=.env', '-e .env']) {
    const { exitCode, stdout } = await run(`preflight ${option}`)
    expect({ option, exitCode, stdout }).toEqual({
      option,
      exitCode: 1,
      stdout: expect.stringMatching(/^Platform [\s\S]*mail-without-key {2}\.env:2:1/),
    })
  }
  expect(await run('preflight --env-file missing.env')).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: 'platformctl: cannot read missing.env: there is no such file; check the path.',
  })
})

test('a damaged page of a large store is found by a thread that shares the program’s SQLite', async () => {
  const { cwd, start } = await machine()
  const { urls, stop } = await start('--data data --no-schedule')
  const file = path.join(cwd, 'data/platform.sqlite')
  const store = new Database(file)
  store.exec('CREATE TABLE filler (text TEXT)')
  for (let row = 0; row < 60; row += 1)
    store.prepare('INSERT INTO filler VALUES (?)').run('x'.repeat(100_000))
  store.pragma('wal_checkpoint(TRUNCATE)')
  store.close()
  const state = async () => {
    const body = (await (await fetch(`${urls.web}/api/health?deep=1`)).json()) as {
      probes: { store: { state: string } }
    }
    return body.probes.store.state
  }
  expect(await state()).toBe('ok')
  const bytes = await open(file, 'r+')
  for (let page = 1000; page < 1400; page += 1)
    await bytes.write(Buffer.alloc(4096, 0xa5), 0, 4096, page * 4096)
  await bytes.close()
  await expect.poll(state, { timeout: 20_000, interval: 500 }).toBe('failing')
  expect(await stop()).toBe(0)
})

test('talks to PostgreSQL', async () => {
  const { run, put } = await machine()
  await put('.env', `STORE_URL=${await (await postgresServer()).createDatabase()}\n`)
  expect((await run('db migrate --env-file .env')).stdout).toMatch(/^migrated from schema 0/)
})

test.skipIf(!isRoot)(
  'as another user, where temporary files cannot be run, SQLite is loaded from elsewhere; from nowhere it says so',
  async () => {
    const { cwd, env } = await machine()
    const contained = (script: string) =>
      execa(
        '/usr/bin/unshare',
        [
          '--mount',
          '/bin/sh',
          '-ec',
          `/bin/mount -t tmpfs -o noexec,mode=1777 tmpfs "$TMPDIR"; ${script}; cd "$HOME"; /bin/chmod 755 . ; /bin/mkdir data; /bin/chown 4711 data
exec /usr/bin/setpriv --reuid=4711 --regid=4711 --clear-groups ${program} db migrate --data data`,
        ],
        { cwd, env, extendEnv: false, reject: false },
      )
    expect(await contained(':')).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^migrated/) })
    await execa('rm', ['-r', path.join(cwd, 'data')])
    const nowhere = await contained(
      'for folder in /dev/shm /var/tmp; do /bin/mount -t tmpfs -o noexec,mode=1777 tmpfs "$folder"; done',
    )
    expect(nowhere).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/mounted noexec. Set TMPDIR/),
    })
  },
)

test('a release has the package, the executable in an archive, and checksums of all that are right', async () => {
  const checked = await execa('sha256sum', ['--check', 'SHA256SUMS'], {
    cwd: path.dirname(released('*.tgz')),
  })
  expect(checked.stdout.match(/: OK$/gm)).toHaveLength(4)
  const { stdout } = await execa('tar', ['-tzf', released('*.tar.gz')])
  for (const file of [
    'platformctl',
    'LICENSE',
    'THIRD-PARTY-NOTICES.txt',
    'proxy/nginx.conf',
    'offsite/platformctl-offsite',
  ])
    expect(stdout.split('\n')).toContain(`platformctl-${packageJson.version}-linux-${process.arch}/${file}`)
  const bom = await readFile(released('sbom.cdx.json'), 'utf8')
  for (const name of ['node', 'better-sqlite3', 'hono']) expect(bom).toContain(`"name":"${name}"`)
})

test.skipIf(!isRoot)('the Debian package installs, and leaves its settings when it is removed', async () => {
  const place = await emptyFolder()
  await mkdir(path.join(place, 'var/lib/dpkg'), { recursive: true })
  await writeFile(path.join(place, 'var/lib/dpkg/status'), '')
  const dpkg = (...args: string[]) =>
    execa('dpkg', [`--root=${place}`, '--force-depends', '--force-script-chrootless', ...args])
  await dpkg('--install', released('*.deb'))
  await writeFile(path.join(place, 'etc/platformctl/env'), 'LOG_LEVEL=warn\n')
  await dpkg('--install', released('*.deb'))
  await dpkg('--remove', 'platformctl')
  expect(await readFile(path.join(place, 'etc/platformctl/env'), 'utf8')).toBe('LOG_LEVEL=warn\n')
  expect(existsSync(path.join(place, 'usr'))).toBe(false)
})

test.skipIf(!isRoot)(
  'the unit of the Debian package runs the definition of its folder as another user, on a read-only machine',
  async () => {
    const scratch = await emptyFolder()
    const [home = '', state = '', credentials = ''] = ['home', 'state', 'credentials'].map((name) =>
      path.join(scratch, name),
    )
    for (const one of [home, state, credentials]) await mkdir(one)
    await potteryFolder(home)
    await writeFile(path.join(credentials, 'env'), 'KILN_REGION=us\n')
    const unit = await readFile(path.join(folder, 'usr/lib/systemd/system/platformctl.service'), 'utf8')
    expect(unit).toContain('\nWorkingDirectory=-/srv/platform\n')
    const [, line = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
    const command = line
      .replace('/usr/bin/platformctl', program)
      .replace('%S', state)
      .replace('%d', credentials)
    const { stdout, stderr } = await execa(
      'unshare',
      [
        '--mount',
        'sh',
        '-c',
        `
chmod 755 ${scratch} ${home}; chmod -R a+rX ${home}; mkdir ${state}/platformctl; chown -R 4711:4711 ${state} ${credentials}
mount -t tmpfs tmpfs /run; mkdir /run/platformctl; chown 4711:4711 /run/platformctl
mount --bind ${state} ${state}; mount --bind /run /run; mount -o remount,bind,ro /
cd ${home}
RUNTIME_DIRECTORY=/run/platformctl setpriv --reuid=4711 --regid=4711 --clear-groups --no-new-privs --inh-caps=-all ${command} --web-port 0 --shop-port 0 >${state}/log &
until grep -qs '"listening"' ${state}/log; do sleep 0.2; done
head -n 1 ${state}/log
kill $!; wait $!; echo "stopped $?"`,
      ],
      { extendEnv: false, env: { PATH: '/bin:/usr/bin' }, reject: false, timeout: 50_000 },
    )
    expect({ stdout, stderr }).toEqual({
      stdout: expect.stringMatching(/Töpferschule Lehmgrube, defined by [\s\S]*\nstopped 0$/),
      stderr: '',
    })
  },
)

/** The blocks under a heading of a page, as they would be copied. */
function blocksOf(page: string, heading: string): string[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  return [...(section.split('\n## ')[0] ?? '').matchAll(/^```sh\n([\s\S]+?)^```/gm)].map(
    ([, text = '']) => text,
  )
}

test.skipIf(!isRoot)(
  'the commands of the page for one box lead from an empty machine without Node to a lesson in one’s own language',
  async () => {
    const place = await emptyFolder()
    const inbox = path.join(place, 'inbox')
    await mkdir(inbox)
    const page = await readFile(path.join(root, 'runbooks/one-box.md'), 'utf8')
    const blocks = blocksOf(page, 'Do')
    expect(blocks).toHaveLength(4)
    const mail = (text: string) => `until file=$(grep -ls '${text}' /inbox/*); do sleep 0.2; done`
    const inside = [
      'set -eu; cd /root; rm -f $(which -a node npm npx); ! command -v node; cp /released/*.deb .',
      ...blocks.map(
        (block, index) =>
          `began=$EPOCHREALTIME\n${block}\necho; echo "block ${index + 1}: $(echo "$EPOCHREALTIME - $began" | bc) s"`,
      ),
      mail('confirm'),
      `link=$(grep -o 'https://www.example.com/[^ ]*confirm[^ ]*' $file | head -n 1); curl -s -X POST "http://127.0.0.1:3000\${link#https://www.example.com}" -o /dev/null -w '%{http_code}\\n'`,
      mail('Kneten'),
      'cat $file; mkdir -p /run/systemd/system; cd /root',
      /`(apt-get install [^`]+)`/
        .exec(await readFile(path.join(root, 'docs/guides/upgrading.md'), 'utf8'))?.[1]
        ?.replace('install', 'install --reinstall -y') ?? '',
      'platformctl health --wait 30s --url web=http://127.0.0.1:3000; grep -c \'"stopped"\' /run/platformctl.service.log',
      'kill $(cat /run/platformctl.service.pid)',
    ].join('\n')
    await writeFile(path.join(place, 'inside.sh'), inside)
    const script = `
set -eu
ip link set lo up
mount -t tmpfs tmpfs /mnt; mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
cd /mnt/root; mount --rbind /proc proc; mount --rbind /dev dev
mount -t tmpfs tmpfs run; mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p inbox released root; mount --bind ${inbox} inbox; mount --bind ${root}build/release released
cp ${root}test/support/systemctl.sh usr/bin/systemctl; cp ${place}/inside.sh inside.sh
${process.execPath} ${root}test/support/inbox-process.ts ${inbox} & server=$!
chroot /mnt/root /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash /inside.sh || code=$?
kill $server; exit \${code:-0}`
    const { exitCode, all } = await execa('unshare', ['--mount', '--net', 'bash', '-c', script], {
      all: true,
      reject: false,
      timeout: 240_000,
    })
    expect({ exitCode, all }).toEqual({
      exitCode: 0,
      all: expect.stringMatching(/\n200\nDer Ton\n[\s\S]*Kneten Sie ihn[\s\S]*✔ [^\n]*ok\n1$/),
    })
    process.stdout.write(`${all?.match(/^block .*$/gm)?.join('\n')}\n`)
  },
  260_000,
)
