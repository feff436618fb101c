import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Installed, installPacked } from './install.ts'

const read = (file: string) => readFile(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8')
let installed: Installed

/** A sender and a key, and no way to send: half-configured. */
const HALF = 'MAILER_FROM=Kiln <kiln@example.com>\nMAILER_API_KEY=only-for-tests-0123456789\n'

beforeAll(async () => {
  installed = await installPacked()
  await mkdir(path.join(installed.folder, 'envs'))
  await writeFile(path.join(installed.folder, 'envs/.env.half'), HALF)
  await writeFile(path.join(installed.folder, 'envs/.env.example'), 'LOG_LEVEL=info\n')
}, 180_000)
afterAll(() => installed?.remove())

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default: string }>>
  readonly runs: {
    readonly steps: readonly { readonly env: Record<string, string>; readonly run: string }[]
  }
}

/** The steps of the action as GitHub's runner runs them: a file for bash, its inputs in place of the expressions. */
async function runAction(given: Readonly<Record<string, string>>) {
  const { inputs, runs } = parse(await read('action.yml')) as Action
  const all = Object.entries(inputs).map(([name, input]) => [name, given[name] ?? input.default] as const)
  const filled = (text: string) =>
    all.reduce((sofar, [name, value]) => sofar.replaceAll(`\${{ inputs.${name} }}`, value), text)
  const results = []
  const output = path.join(installed.folder, 'output.txt')
  await writeFile(output, '')
  for (const { env, run } of runs.steps) {
    const script = path.join(installed.folder, 'step.sh')
    expect(run).not.toContain('${{')
    await writeFile(script, run)
    const { exitCode, stdout, stderr } = await execa('bash', ['-e', '-o', 'pipefail', script], {
      cwd: installed.folder,
      env: {
        ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, filled(value)])),
        CI: 'true',
        GITHUB_ACTIONS: 'true',
        GITHUB_OUTPUT: output,
      },
      reject: false,
    })
    results.push({ exitCode, stdout, stderr })
  }
  return { results, output: await readFile(output, 'utf8') }
}

test('the action annotates the line of a half-configured file, fails, and still writes its findings', async () => {
  const { results, output } = await runAction({ 'env-file': 'envs/.env.half' })
  expect(results.map(({ exitCode }) => exitCode)).toEqual([1, 0])
  expect(results[0]?.stdout).toMatch(/^::error file=envs\/\.env\.half,.*MAILER/m)
  expect(output).toBe('file=./preflight.sarif\n')
  const sarif = JSON.parse(await readFile(path.join(installed.folder, 'preflight.sarif'), 'utf8'))
  expect(sarif.runs[0].results.length).toBeGreaterThan(0)
})

test('the action passes what is right, and a file that is not there fails both steps aloud', async () => {
  const right = await runAction({ 'env-file': 'envs/.env.example', strict: 'true' })
  expect(right.results.map(({ exitCode }) => exitCode)).toEqual([0, 0])
  const absent = await runAction({ 'env-file': 'envs/.env.absent' })
  expect(absent.results.map(({ exitCode }) => exitCode)).toEqual([2, 1])
  expect(absent.results[0]?.stderr).toContain('.env.absent')
})

test('the hook of pre-commit checks each env file of a commit, and fails for one that is wrong', async () => {
  const [hook] = parse(await read('.pre-commit-hooks.yaml')) as { entry: string; files: string }[]
  const picked = new RegExp(hook?.files ?? '')
  expect(['.env', 'apps/web/.env.example', '.env.production'].every((one) => picked.test(one))).toBe(true)
  expect(['env.ts', '.envrc', '.env.d/readme', 'my.env'].some((one) => picked.test(one))).toBe(false)
  const commit = (...files: string[]) =>
    execa('bash', ['-c', `${hook?.entry} ${files.join(' ')}`], { cwd: installed.folder, reject: false })
  expect((await commit('envs/.env.example')).exitCode).toBe(0)
  const wrong = await commit('envs/.env.half', 'envs/.env.example')
  expect(wrong.exitCode).toBe(1)
  expect(wrong.stdout).toContain('MAILER')
})
