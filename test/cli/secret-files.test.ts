import { execFileSync } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { loadEnvironment } from '../../src/cli/environment.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder, folderWith } from '../support/folder.ts'
import { run } from '../support/run.ts'

const SECRET = 'kUj2-canary-7fQx9LmZp0Rt5WvY'

async function preflight(env: Record<string, string>, files: Record<string, string | Buffer> = {}) {
  const cwd = await folderWith(files)
  return { cwd, ...(await run(['preflight', '--format', 'json'], { cwd, env })) }
}

const idsIn = (stdout: string) =>
  (JSON.parse(stdout) as { findings: { id: string; severity: string }[] }).findings
    .filter(({ severity }) => severity === 'error')
    .map(({ id }) => id)

test.each([
  ['a newline', `${SECRET}\n`, SECRET],
  ['a Windows newline', `${SECRET}\r\n`, SECRET],
  ['two newlines', `${SECRET}\n\n`, `${SECRET}\n`],
  ['no newline', SECRET, SECRET],
])('a secret whose file ends with %s loses one newline at most', async (_, content, value) => {
  const cwd = await folderWith({ secret: content })
  const { context } = testContext({ cwd, env: { EMAIL_DISPATCH_SECRET_FILE: 'secret' } })
  const { env, secretFiles } = await loadEnvironment(context, [])
  expect(env).toEqual({ EMAIL_DISPATCH_SECRET: value })
  expect(secretFiles).toEqual([path.join(cwd, 'secret')])
})

test('a secret in a file configures its group as its value would, also through the links of Kubernetes', async () => {
  const cwd = await folderWith({ mounted: `${SECRET}\n` })
  await symlink('mounted', path.join(cwd, 'secret'))
  const shown = (env: Record<string, string>) => run(['preflight', '--format', 'json'], { cwd, env })
  const byFile = await shown({ EMAIL_DISPATCH_SECRET_FILE: 'secret' })
  const byValue = await shown({ EMAIL_DISPATCH_SECRET: SECRET })
  expect(byFile).toEqual(byValue)
  expect(byFile.stdout).not.toContain(SECRET)
})

test('a secret by value and by file is an error that shows neither', async () => {
  const { code, stdout } = await preflight(
    { EMAIL_DISPATCH_SECRET: `${SECRET}a`, EMAIL_DISPATCH_SECRET_FILE: './secret' },
    { secret: SECRET },
  )
  expect(code).toBe(1)
  expect(idsIn(stdout)).toEqual(['secret-set-twice'])
  expect(stdout).not.toContain(SECRET)
})

test.each([
  ['empty', '\n', 'is empty'],
  ['too large', `${SECRET}${'x'.repeat(65_536)}`, 'is larger than 64 KB'],
  ['binary', `${SECRET}\0`, 'is not a text file'],
  ['not UTF-8', Buffer.from([0xc3, 0x28]), 'is not valid UTF-8'],
])(
  'an error for a file that is %s names the variable and the file, never the content',
  async (_, content, reason) => {
    const { code, stdout } = await preflight({ EMAIL_DISPATCH_SECRET_FILE: './secret' }, { secret: content })
    expect(code).toBe(1)
    expect(idsIn(stdout)).toEqual(['unreadable-secret-file'])
    expect(stdout).toContain(`./secret, which EMAIL_DISPATCH_SECRET_FILE names, ${reason}.`)
    expect(stdout).not.toContain(SECRET)
  },
)

test('a folder and a named pipe without a writer are refused at once', async () => {
  const cwd = await emptyFolder()
  await mkdir(path.join(cwd, 'folder'))
  execFileSync('mkfifo', [path.join(cwd, 'pipe')])
  for (const file of ['./folder', './pipe']) {
    const { code, stdout } = await run(['preflight', '--format', 'json'], {
      cwd,
      env: { EMAIL_DISPATCH_SECRET_FILE: file },
    })
    expect(code).toBe(1)
    expect(stdout).toContain(`${file}, which EMAIL_DISPATCH_SECRET_FILE names, is not a regular file.`)
  }
})

test.each(['', '/'])('a secret with %j in it, put where the path belongs, is not repeated', async (slash) => {
  const { code, stdout } = await preflight({ EMAIL_DISPATCH_SECRET_FILE: `${SECRET}${slash}x` })
  expect(code).toBe(1)
  expect(idsIn(stdout)).toEqual(['unreadable-secret-file'])
  expect(stdout).not.toContain(SECRET)
})

test('env check points to the line of the file that names the secret', async () => {
  const cwd = await folderWith({ '.env': '# secrets\nEMAIL_DISPATCH_SECRET_FILE=/run/absent/dispatch\n' })
  const { code, stdout } = await run(['env', 'check', '.env', '--format', 'json'], { cwd })
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({
    findings: expect.arrayContaining([
      expect.objectContaining({
        id: 'unreadable-secret-file',
        location: { file: '.env', line: 2, column: 1 },
      }),
    ]),
  })
})

test.each([
  ['web', 1, ['unreadable-secret-file']],
  ['agent', 0, []],
] as const)(
  'preflight --service %s reports an unreadable secret file only if that service reads it',
  async (service, code, ids) => {
    const env = { EMAIL_DISPATCH_SECRET_FILE: '/run/absent/dispatch' }
    const told = await run(['preflight', '--format', 'json', '--service', service], { env })
    expect({ code: told.code, ids: idsIn(told.stdout) }).toEqual({ code, ids })
  },
)

test('does not fall back to another store when the file of STORE_URL is missing', async () => {
  const env = { STORE_URL_FILE: '/run/absent/url' }
  expect(await run(['db', 'status'], { cwd: await emptyFolder(), env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('/run/absent/url, which STORE_URL_FILE names, does not exist.'),
  })
})

test('a misspelt NAME_FILE is answered with the right one, and explain knows it', async () => {
  const { stdout } = await preflight({ EMAIL_DISPATCH_SECRET_FIEL: './secret' })
  expect(stdout).toContain('Did you mean EMAIL_DISPATCH_SECRET_FILE?')
  const explained = await run(['env', 'explain', 'EMAIL_DISPATCH_SECRET_FILE'], {})
  expect(explained.code).toBe(0)
  expect(explained.stdout).toContain('EMAIL_DISPATCH_SECRET_FILE may name a file')
})
