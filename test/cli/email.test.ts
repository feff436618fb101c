import { cp, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'

const templates = fileURLToPath(new URL('../../templates', import.meta.url))

async function run(args: readonly string[], change: Readonly<Record<string, (text: string) => string>> = {}) {
  const cwd = await emptyFolder()
  await cp(templates, path.join(cwd, 'mails'), { recursive: true })
  for (const [name, edit] of Object.entries(change)) {
    const file = path.join(cwd, 'mails', name)
    await writeFile(file, edit(await readFile(file, 'utf8')))
  }
  const { context, stdout, stderr } = testContext({ cwd })
  return { code: await runProgram(args, context), stdout: stdout(), stderr: stderr() }
}

const LINT = ['email', 'lint', '--templates', 'mails'] as const
const broken = { 'welcome.md': (text: string) => text.replace('{{startUrl}}', '{{startUrll}}') }
const shouting = {
  'welcome.md': (text: string) => text.replace('subject: Welcome', 'subject: WELCOME TO YOU'),
}

test('lint passes on the mails of the package, also with --strict, and lists all twelve', async () => {
  const { code, stdout, stderr } = await run([...LINT, '--strict'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.match(/^✔ /gm)).toHaveLength(13)
  expect(stdout).toMatch(/✔ passed: 0 errors, 0 warnings in 12 mails\n$/)
})

test('a template that does not compile is a finding at its line, exit 1, and the others are still checked', async () => {
  const { code, stdout } = await run([...LINT, '--format', 'json'], broken)
  expect(code).toBe(1)
  const report = JSON.parse(stdout) as { ok: boolean; mails: unknown[]; findings: { id: string }[] }
  expect(report).toMatchObject({ version: 1, ok: false })
  expect(report.mails).toHaveLength(12)
  expect(report.findings.filter(({ id }) => id === 'template-broken')).toEqual([
    expect.objectContaining({
      severity: 'error',
      location: { file: 'mails/welcome.md', line: 6, column: 1 },
      cause: expect.stringContaining('there is no slot startUrll'),
    }),
  ])
})

test('a warning fails with --strict only, in every format', async () => {
  expect((await run(LINT, shouting)).code).toBe(0)
  const formats = {
    text: /▲ warning subject-shouts {2}mails\/welcome\.md:2:1/,
    github: /^::warning file=mails\/welcome\.md,line=2,col=1,title=subject-shouts::/m,
    sarif: /"ruleId": "subject-shouts"/,
    junit: /<failure message="The subject shouts\."/,
    json: /"id": "subject-shouts"/,
  }
  for (const [format, pattern] of Object.entries(formats)) {
    const { code, stdout } = await run([...LINT, '--strict', '--format', format], shouting)
    expect({ format, code }).toEqual({ format, code: 1 })
    expect(stdout).toMatch(pattern)
  }
})

test('a finding of lint is explained', async () => {
  const { code, stdout } = await run(['env', 'explain', 'contrast-low'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^contrast-low \(error of platformctl email lint\)\n.*WCAG/)
})

test.each(['lint', 'preview'])('email %s of a folder without a layout is wrong usage', async (command) => {
  const { code, stdout, stderr } = await run(['email', command, '--templates', 'nowhere'])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^platformctl: nowhere is not a folder of templates: .*\.\n$/)
})
