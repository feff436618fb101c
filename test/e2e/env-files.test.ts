import { chmod, mkdir, open, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { bin, platformctl } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { command } from '../support/in-process.ts'

const FORMATS = ['text', 'json', 'sarif', 'junit', 'github'] as const

const UNREADABLE: readonly (readonly [string, (file: string) => Promise<unknown>, RegExp])[] = [
  ['a folder', (file) => mkdir(file), /: it is a folder; name a file\.$/],
  ['no file at all', async () => {}, /: there is no such file; check the path\.$/],
  ['a binary file', (file) => writeFile(file, Buffer.from('A=b\0\u0001\u0002')), /binary/],
  [
    'UTF-16, as a Windows editor writes it',
    (file) => writeFile(file, Buffer.from('\uFEFFA=b\r\n', 'utf16le')),
    /is UTF-16: save it as UTF-8\.$/,
  ],
  [
    'UTF-16 with the high byte first',
    (file) => writeFile(file, Uint8Array.of(0xfe, 0xff, 0, 0x41)),
    /is UTF-16: save it as UTF-8\.$/,
  ],
  ['invalid UTF-8', (file) => writeFile(file, Buffer.from([0x41, 0x3d, 0xc3, 0x28])), /not valid UTF-8/],
  [
    'a file of 100 MB',
    async (file) => {
      const handle = await open(file, 'w')
      await handle.truncate(100 * 1024 * 1024)
      await handle.close()
    },
    /larger than an env file can be/,
  ],
]

test.skipIf(process.platform === 'win32')(
  'a pipe is read as a file is, and a device that never ends is refused when it is too much',
  async () => {
    const cwd = await emptyFolder()
    expect(await platformctl(['env', 'check', '/dev/zero'], { cwd })).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringMatching(/^platformctl: \/dev\/zero is larger than an env file can be[^\n]*$/),
    })
    // A shell's pipe: what Node gives a child as its input is a socket.
    const command = `printf 'LOG_LEVEL=loud\\n' | "$0" -- "$1" env check /dev/stdin`
    const piped = await execa('sh', ['-c', command, process.execPath, bin], { cwd, reject: false })
    expect(piped).toMatchObject({ exitCode: 0, stderr: '' })
    expect(piped.stdout).toContain('malformed-value  /dev/stdin:1:1')
  },
)

test.each(UNREADABLE)(
  '%s: one sentence that names the file, exit 2, nothing on standard output',
  async (_, make, sentence) => {
    const cwd = await emptyFolder()
    await make(path.join(cwd, 'the.env'))
    for (const args of [
      ['preflight', '--env-file', 'the.env', '--format', 'json'],
      ['env', 'check', 'the.env'],
      ['env', 'dialects', 'the.env'],
    ]) {
      const { exitCode, stdout, stderr } = await command(args, { cwd })
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
      expect(stderr).toMatch(/^platformctl: [^\n]*the\.env[^\n]*$/)
      expect(stderr).toMatch(sentence)
    }
  },
)

test('a file without permission is one sentence, also when only its folder forbids it', async () => {
  const cwd = await emptyFolder()
  await mkdir(path.join(cwd, 'closed'))
  await writeFile(path.join(cwd, 'mine.env'), 'LOG_LEVEL=info')
  await writeFile(path.join(cwd, 'closed', 'a.env'), 'LOG_LEVEL=info')
  await writeFile(path.join(cwd, 'mine.ts'), 'export default {}')
  await chmod(path.join(cwd, 'mine.env'), 0o000)
  await chmod(path.join(cwd, 'mine.ts'), 0o000)
  await chmod(path.join(cwd, 'closed'), 0o000)
  await chmod(cwd, 0o755)
  // Root may read everything: the command is run as nobody then.
  const asNobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  for (const [option, file, sentence] of [
    ['--env-file', 'mine.env', 'cannot read mine.env: permission denied; check who owns it.'],
    ['--env-file', 'closed/a.env', 'cannot read closed/a.env: permission denied; check who owns it.'],
    ['--config', 'mine.ts', 'mine.ts: The file cannot be read. Check who owns it.'],
  ] as const) {
    const { exitCode, stdout, stderr } = await execa(
      process.execPath,
      ['--', bin, 'preflight', option, file],
      {
        cwd,
        reject: false,
        env: { NODE_DISABLE_COMPILE_CACHE: '1' },
        ...asNobody,
      },
    )
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toBe(`platformctl: ${sentence}`)
  }
  await chmod(path.join(cwd, 'closed'), 0o755)
})

test.each([
  ['an unterminated quote', 'MAILER_REPLY_TO="help@example.com\nLOG_LEVEL=info\n', 'unterminated-quote'],
  ['a line that is no assignment', 'LOG_LEVEL info\n', 'unreadable-line'],
  ['a name that no reader takes', 'LOG LEVEL=info\n', 'unreadable-line'],
  ['a name that begins with a digit', '1LOG_LEVEL=info\n', 'unreadable-line'],
  ['a value that no text may hold', 'BUILD_STAMP="a\u0007b"\n', 'malformed-value'],
])('%s is a finding with its line, in every format, and hides nothing else', async (_, text, id) => {
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, 'the.env'), `${text}SHAREDSTORE_REST_URL=https://limits.example.com\n`)
  for (const format of FORMATS) {
    const { exitCode, stdout, stderr } = await command(['env', 'check', 'the.env', '--format', format], {
      cwd,
    })
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^(?:no definition found in .*: running the default platform)?$/)
    expect(stdout).toContain(id)
    expect(stdout).toContain('sharedstore-pair')
  }
})

test('later files win over earlier ones and the process over all; each loser is named at its line', async () => {
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, '.env'), 'LOG_LEVEL=loud\nSTORE_POOL_SIZE=5\nRATE_LIMIT_PER_MINUTE=60\n')
  await writeFile(path.join(cwd, '.env.local'), '\nLOG_LEVEL=debug\nSTORE_POOL_SIZE=5\n')
  const { stdout, exitCode } = await command(
    ['preflight', '--env-file', '.env', '--env-file', '.env.local', '--format', 'json'],
    { cwd, env: { RATE_LIMIT_PER_MINUTE: '90' } },
  )
  expect(exitCode).toBe(0)
  const { findings } = JSON.parse(stdout) as {
    findings: { id: string; severity: string; cause: string; location: { file: string; line: number } }[]
  }
  expect(
    findings
      .filter(({ severity }) => severity !== 'notice')
      .map(({ id, cause, location }) => [id, `${location.file}:${location.line}`, cause]),
  ).toEqual([
    [
      'shadowed-value',
      '.env:1',
      'This value of LOG_LEVEL is not used: line 2 of .env.local sets it too and wins.',
    ],
    [
      'shadowed-value',
      '.env:2',
      'This value of STORE_POOL_SIZE is not used: line 3 of .env.local sets it too and wins.',
    ],
    [
      'shadowed-value',
      '.env:3',
      'This value of RATE_LIMIT_PER_MINUTE is not used: the process environment sets it too and wins.',
    ],
  ])
})

test.skipIf(process.platform === 'win32')(
  'reads a pipe with a late writer, and gives up on one without',
  async () => {
    const cwd = await emptyFolder()
    await execa('mkfifo', [path.join(cwd, 'pipe')])
    const reading = command(['env', 'check', 'pipe'], { cwd })
    await writeFile(path.join(cwd, 'pipe'), 'LOG_LEVEL=loud\n')
    expect(await reading).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('pipe:1:1') })
    for (const args of [
      ['preflight', '--env-file', 'pipe'],
      ['email', 'feedback', 'pipe'],
    ])
      expect(await command(args, { cwd })).toMatchObject({
        exitCode: 2,
        stderr: 'platformctl: cannot read pipe: nobody has written to this pipe.',
      })
  },
)

test.skipIf(process.platform === 'win32')(
  'SIGTERM ends a command that waits for a pipe whose writer is silent',
  async () => {
    const cwd = await emptyFolder()
    await execa('mkfifo', [path.join(cwd, 'pipe')])
    // Held open for reading and writing, as by a writer that says nothing; the signal comes when the command waits.
    const script =
      'exec 9<>pipe; "$0" -- "$1" preflight --env-file pipe & sleep 1; kill -TERM $!; wait $!; echo $?'
    const { stdout } = await execa('bash', ['-c', script, process.execPath, bin], { cwd, timeout: 15_000 })
    expect(stdout).toBe('2')
    const silent = 'exec 9<>pipe; "$0" -- "$1" email feedback <&9 & sleep 1; kill -TERM $!; wait $!; echo $?'
    const fed = await execa('bash', ['-c', silent, process.execPath, bin], { cwd, timeout: 15_000 })
    expect(fed).toMatchObject({
      stdout: '2',
      stderr: 'platformctl: interrupted before the whole message was read.',
    })
  },
)
