import path from 'node:path'
import { expect, test } from 'vitest'
import { CAUSES } from '../../src/core/network/causes.ts'
import { folderWith } from '../support/folder.ts'
import { type Parts, run as runIn } from '../support/run.ts'
import { healthBody, serve } from '../support/servers.ts'

const run = (args: readonly string[], parts?: Parts) => runIn(['health', ...args], parts)

/** A clock on which only sleeping takes time. */
function steppingClock(stepsBackAt = Number.POSITIVE_INFINITY) {
  const it = {
    passed: 0,
    now: () => (it.passed > stepsBackAt ? -3_600_000 : 0),
    monotonic: () => it.passed,
    sleep: async (ms: number) => {
      it.passed += ms
    },
  }
  return it
}

test.each([
  [['--service', 'database'], /unknown service 'database'\. Choose one of web, api, agent\./],
  [
    ['--url', 'http://127.0.0.1:1'],
    /web=ADDRESS, api=ADDRESS or agent=ADDRESS, or NAME=ADDRESS for another program/,
  ],
  [['--url', 'web=ftp://127.0.0.1'], /http:\/\/ or https:\/\/ address/],
  [['--url', 'web=http:///x'], /http:\/\/ or https:\/\/ address/],
  [['--url', 'web=http://'], /http:\/\/ or https:\/\/ address/],
  [['--url', 'web=http://user:canary@127.0.0.1'], /without a user name/],
  [['--url', 'web=http://127.0.0.1/?deep=1'], /without a user name, a query or a fragment/],
  [['--url', 'web=http://127.0.0.1/#a'], /without a user name, a query or a fragment/],
  [['--url', 'web=http://127.0.0.1:1', '--service', 'api'], /--service leaves it out/],
  [['--url', 'web=http://127.0.0.1:1', 'web=http://127.0.0.1:2'], /gives one service two addresses/],
  [['--timeout', 'soon'], /A duration such as/],
  [['--consecutive', '0'], /whole number from 1 to 100/],
  [['--consecutive', '3'], /needs --wait/],
  [['--interval', '3s'], /is for --watch/],
  [['--watch', '--wait', '3s'], /use one of the two/],
  [['--watch', '--quiet'], /use one of the two/],
  [['--watch', '--format', 'junit'], /writes text or json/],
  [['--format', 'xml'], /unknown format 'xml'\. Choose one of text, json, junit, prom\./],
  [['--env-file', 'nowhere.env'], /cannot read nowhere\.env: there is no such file/],
  [['--deep', '--token-env', 'NOWHERE'], /the variable NOWHERE that --token-env names is not set/],
  // What may be the token is not repeated.
  [['--deep', '--token-env', 'tok_4fG7kP2vX9'], /: the variable that --token-env names is not set/],
  [
    ['--deep', '--token-file', 'tok_4fG7kP2vX9'],
    /read the file that --token-file names: there is no such file/,
  ],
  [['--deep', '--token-file', 'nowhere.token'], /cannot read nowhere\.token: there is no such file/],
])('%j is wrong usage: one sentence, exit code 2, nothing asked', async (args, sentence) => {
  const { code, stdout, stderr } = await run(args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(sentence)
  expect(stderr).not.toContain('canary')
  expect(stderr.match(/^(?!\()./gm)).toHaveLength(1)
})

test.each(['', ' \n', ',', 'two words', 'a\u0000b'])(
  'refuses a token file with the content %j',
  async (token) => {
    expect((await run(['--deep', '--token-file', 'token'], { cwd: await folderWith({ token }) })).code).toBe(
      2,
    )
  },
)

// While it is rotated the file holds two: the first is sent.
test.each(['\n', '\r\n', '', ',the-token-before-it\n'])(
  'the token of a file that ends in %j, named by an option or a variable, goes to web as Authorization, and to no other service',
  async (end) => {
    const cwd = await folderWith({
      token: `the-token-of-a-file${end}`,
      '.env': 'HEALTH_DEEP_TOKEN=the-token-of-a-file\n',
    })
    const seen: Record<string, unknown> = {}
    const start = (service: string) =>
      serve((request, response) => {
        seen[service] = [request.url, request.headers.authorization]
        response.end(healthBody({ service }))
      })
    const urls = [`web=${await start('web')}`, `api=${await start('api')}`, `agent=${await start('agent')}`]
    for (const [env, ...named] of [
      [{}, '--token-file', 'token'],
      [{ HEALTH_DEEP_TOKEN_FILE: 'token' }],
      [{}, '--env-file', '.env'],
    ] as const) {
      expect((await run(['--deep', ...named, '--url', ...urls], { cwd, env })).code).toBe(0)
      expect(seen).toEqual({
        web: ['/api/health?deep=1', 'Bearer the-token-of-a-file'],
        api: ['/api/health', undefined],
        agent: ['/api/agent/health', undefined],
      })
    }
  },
)

test('the token of the daemon that runs here is that of its env files, whose addresses are not asked', async () => {
  const cwd = await folderWith({
    '.env': 'HEALTH_DEEP_TOKEN=the-token\nNEXT_PUBLIC_SITE_URL=http://host.invalid\n',
  })
  let token: string | undefined
  const web = await serve((request, response) => {
    token = request.headers.authorization
    response.end(healthBody())
  })
  const daemon = { dataFolder: cwd, envFiles: [path.join(cwd, '.env')], urls: { web } }
  expect(await run(['--deep', '--service', 'web'], { daemon })).toMatchObject({ code: 0, stderr: '' })
  expect(token).toBe('Bearer the-token')
  // As everywhere, the process's environment wins.
  await run(['--deep', '--service', 'web'], { daemon, env: { HEALTH_DEEP_TOKEN: 'another' } })
  expect(token).toBe('Bearer another')
})

test('warns before a token is sent unencrypted', async () => {
  const env = { HEALTH_DEEP_TOKEN: 'canary-token' }
  // The worker is not asked deeply, and so gets no token.
  const urls = ['web', 'worker'].flatMap((name) => ['--url', `${name}=http://host.invalid`])
  const { stderr, stdout } = await run(['--deep', ...urls, '--timeout', '1ms'], { env })
  expect(stderr).toBe('platformctl: the token travels unencrypted to web: use its https:// address.\n')
  expect(stdout).not.toContain('canary')
})

test('addresses come from the env file, below a path too, and not from this process', async () => {
  const asked: string[] = []
  const url = await serve((request, response) => {
    asked.push(request.url ?? '')
    response.end(healthBody({ service: 'api' }))
  })
  const cwd = await folderWith({ 'file.env': `API_URL=${url}/base/`, more: 'BUILD_STAMP=b' })
  const files = ['--env-file', 'file.env', '--env-file', 'more']
  expect((await run(['--service', 'api', ...files], { cwd })).code).toBe(0)
  expect(asked).toEqual(['/base/api/health'])
  // In a container API_URL names the public address; its HEALTHCHECK asks the process beside it.
  const { stdout } = await run(['--service', 'api', '--format', 'json'], {
    env: { API_URL: 'http://host.invalid' },
  })
  expect(stdout).toContain('"url": "http://127.0.0.1:8000"')
})

test('with an env file the process environment wins, as at boot', async () => {
  const cwd = await folderWith({ 'file.env': 'AGENT_URL=http://file.invalid' })
  const url = await serve((_, response) => response.end(healthBody({ service: 'agent' })))
  const { stdout } = await run(['--service', 'agent', '--env-file', 'file.env', '--format', 'json'], {
    cwd,
    env: { AGENT_URL: url },
  })
  expect(stdout).toContain(`"url": "${url}"`)
})

test.each([
  ['NEXT_PUBLIC_SITE_URL=htp//www.example.com', 'NEXT_PUBLIC_SITE_URL', 'web'],
  ['NEXT_PUBLIC_SITE_URL=https://user:canary@www.example.com', 'NEXT_PUBLIC_SITE_URL', 'web'],
  ['API_URL=api.example.com:8000\nNEXT_PUBLIC_API_URL=canary', 'API_URL', 'api'],
])('an env file with %j is refused: this machine is not asked in its place', async (text, name, service) => {
  const cwd = await folderWith({ 'file.env': text })
  const args = ['--service', service, '--env-file', 'file.env', '--timeout', '1s']
  expect(await run(args, { cwd })).toEqual({
    code: 2,
    stdout: '',
    stderr: `platformctl: ${name} does not hold an http:// or https:// address without a user name, a query or a fragment: correct it, or name the address with --url ${service}=….\n`,
  })
  // Services that are not asked may be misconfigured.
  const url = await serve((_, response) => response.end(healthBody({ service })))
  expect((await run([...args, '--url', `${service}=${url}`], { cwd })).code).toBe(0)
})

test('a malformed address gives way to the other variable of its service', async () => {
  const url = await serve((_, response) => response.end(healthBody({ service: 'agent' })))
  const cwd = await folderWith({ 'file.env': `AGENT_URL=agent.example.com\nNEXT_PUBLIC_AGENT_URL=${url}` })
  expect((await run(['--service', 'agent', '--env-file', 'file.env'], { cwd })).code).toBe(0)
})

test.each([
  ['ok', 0],
  ['degraded', 0],
  ['failing', 1],
  ['unreached', 1],
] as const)('as a HEALTHCHECK, a service that is %s is exit code %d and silent', async (state, code) => {
  const url =
    state === 'unreached'
      ? 'http://127.0.0.1:1'
      : await serve((_, response) => response.end(healthBody({ state })))
  expect(await run(['--quiet', '--url', `web=${url}`])).toEqual({ code, stdout: '', stderr: '' })
})

test('--wait on a service that never comes is exit code 3, and says each change once on standard error', async () => {
  // The machine's clock steps an hour back while it waits.
  const clock = steppingClock(5000)
  const { code, stderr } = await run(['--wait', '20s', '--url', 'web=http://127.0.0.1:1'], { clock })
  expect({ code, passed: clock.passed }).toEqual({ code: 3, passed: 19_000 })
  expect(stderr).toBe('waiting, 20 s left: not reached: web\n')
})

test.each([
  ['text', '✖ not often enough in a row: web is ok'],
  ['json', '"passed": false,'],
  ['junit', '<failure type="verdict" message="not often enough in a row: web is ok">'],
  ['prom', 'platformctl_remote_passed 0\n'],
])('--wait that ends before enough passes in a row is exit code 1, and %s says so', async (format, said) => {
  const url = await serve((_, response) => response.end(healthBody()))
  const clock = steppingClock()
  const args = ['--wait', '2s', '--consecutive', '9', '--url', `web=${url}`, '--format', format]
  const { code, stdout } = await run(args, { clock })
  expect(code).toBe(1)
  expect(stdout).toContain(said)
})

test('every cause code is explained, one by one and all together', async () => {
  const all = await run(['explain'])
  for (const [code, { fix }] of Object.entries(CAUSES)) {
    const { stdout } = await run(['explain', code])
    expect(stdout).toContain(fix)
    expect(all.stdout).toContain(stdout)
  }
})

test.each([[[]], [['--wait', '60s']], [['--quiet']]])(
  'an interrupt with %j ends it at once: exit code 1, and nothing is said of services that were not waited for',
  async (args) => {
    const interrupt = new AbortController()
    const url = await serve(() => interrupt.abort())
    const began = performance.now()
    const { code, stdout, stderr } = await run(['--url', `web=${url}`, ...args], { signal: interrupt.signal })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      args[0] === '--quiet' ? '' : 'platformctl: interrupted before all services had answered.\n',
    )
    // Far less than the time-out of five seconds.
    expect(performance.now() - began).toBeLessThan(3000)
  },
)

test('asks a name outside the definition as another program, at exactly the given address', async () => {
  const asked: (string | undefined)[] = []
  const url = await serve((request, response) => {
    asked.push(request.url)
    response.end('ok')
  })
  const well = await run(['--url', `database=${url}/ready`])
  expect(well).toMatchObject({ code: 0, stdout: expect.stringMatching(/database/) })
  expect(asked).toEqual(['/ready'])
  const broken = await serve((_, response) => response.writeHead(503).end('{"status":"DOWN"}'))
  expect((await run(['--url', `database=${url}`, `shop=${broken}/actuator/health`])).code).toBe(1)
})
