import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { run } from '../support/run.ts'
import { junitFaults, schemaFaults } from '../support/schemas.ts'
import { healthBody, serve } from '../support/servers.ts'

/** web follows api, api's job store is broken (and says so in characters that every format must escape), agent is down. */
async function platform() {
  const nasty = 'a "quoted" <b>&\'\\ reason'
  const web = await serve((_, response) =>
    response.writeHead(503).end(
      healthBody({
        state: 'failing',
        build: 'b"1',
        probes: {
          api: { state: 'failing', checked: true, reason: 'is failing', latencyMs: 2 },
          mail: { state: 'skipped', checked: false, reason: 'not configured' },
        },
      }),
    ),
  )
  const api = await serve((_, response) =>
    response.writeHead(503).end(
      healthBody({
        service: 'api',
        state: 'failing',
        build: 'b2',
        probes: {
          job_store: { state: 'failing', checked: true, reason: nasty, latencyMs: 3.5 },
          circuit: { state: 'ok', checked: true, latencyMs: 0.4 },
          cloudb: { state: 'degraded', checked: false, reason: nasty },
        },
      }),
    ),
  )
  return ['--url', `web=${web}`, `api=${api}`, 'agent=http://127.0.0.1:1']
}

const answering = async (body: Record<string, unknown>) => [
  '--url',
  `web=${await serve((_, response) => response.end(healthBody(body)))}`,
]

async function health(format: string) {
  const { code, stdout, stderr } = await run(['health', ...(await platform()), '--format', format])
  expect({ code, stderr }).toEqual({ code: 3, stderr: '' })
  return stdout
}

test('json says what was seen, what follows from what, and which builds run', async () => {
  expect(JSON.parse(await health('json'))).toMatchObject({
    version: 1,
    passed: false,
    outcome: 'unreached',
    sentence: 'not reached: agent; failing: web (because api), api; different builds run: web b"1, api b2',
    services: [
      {
        service: 'web',
        state: 'failing',
        because: ['api'],
        phases: { tcp: expect.any(Number), firstByte: expect.any(Number), total: expect.any(Number) },
        report: { build: 'b"1' },
      },
      { service: 'api', state: 'failing', because: [] },
      {
        service: 'agent',
        state: 'unreached',
        cause: 'connect_refused',
        reason: expect.any(String),
        fix: expect.any(String),
      },
    ],
    rootCauses: [
      { services: ['agent'], state: 'unreached', cause: 'connect_refused' },
      { services: ['api'], probe: 'job_store', state: 'failing' },
    ],
    builds: { web: 'b"1', api: 'b2' },
    skew: true,
  })
})

test.each([
  ['a platform in trouble', platform],
  ['a service that is well', () => answering({})],
  ['a service that says it fails and not why', () => answering({ state: 'failing' })],
] as const)('the document of %s keeps to its published schema', async (_, start) => {
  const { stdout } = await run(['health', ...(await start()), '--format', 'json'])
  const file = new URL('../../docs/reference/schemas/health.schema.json', import.meta.url)
  const schema = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  expect(schemaFaults(schema, JSON.parse(stdout))).toEqual([])
})

test('text names the root cause once and its follower as such', async () => {
  const text = await health('text')
  expect(text).toContain('✖ web   failing    because api  build b"1')
  expect(text.match(/root cause/g)).toHaveLength(2)
  expect(text).toContain('root cause  api: job_store: a "quoted"')
  expect(text).toContain('(connect_refused)\n            Start the service, or correct its port.')
  expect(text.trimEnd().split('\n').at(-1)).toMatch(/^✖ not reached: agent; /)
})

test.each(['text', 'junit'])(
  'as %s, a probe that fails because of another one names it, and is no root cause',
  async (format) => {
    const check = () => ({ state: 'failing' }) as const
    const probes = {
      dome: { service: 'web', check },
      slots: { service: 'web', check, dependsOn: ['dome'] },
      loans: { service: 'web', check, dependsOn: ['slots', 'store'] },
    }
    const failing = { state: 'failing', checked: true, reason: 'no' }
    const args = await answering({
      state: 'failing',
      probes: { loans: failing, slots: failing, dome: failing },
    })
    const { stdout } = await run(['health', ...args, '--format', format], {
      platform: resolvePlatform({ preset: 'base', probes }, { folder: '/' }),
    })
    expect(stdout.match(/root cause {2}.*/g) ?? []).toEqual(
      format === 'text' ? ['root cause  web: dome: no'] : [],
    )
    expect(stdout.match(/no \(because of dome\)/g)).toHaveLength(2)
  },
)

test('junit has a case for reaching each service, one for each probe and one for the verdict', async () => {
  const xml = await health('junit')
  expect(xml).toContain('tests="9" failures="3" errors="1"')
  expect(xml).toContain(
    '<error type="connect_refused" message="the connection was refused: nothing listens there">',
  )
  expect(xml).toContain('message="is failing (because api)"')
  expect(xml).toContain('a &quot;quoted&quot; &lt;b&gt;&amp;&#39;\\ reason')
  expect(xml).toContain('<skipped>not configured</skipped>')
  expect(await junitFaults(xml)).toEqual([])
})

test.each([
  [['--expect-build', 'b2'], 'degraded: web; expected build b2, found web b1'],
  [['--strict'], 'degraded: web'],
  [['--wait', '1s', '--consecutive', '9'], 'not often enough in a row: degraded: web'],
  [[], undefined],
])('junit with %j is as red as the exit code: %s', async (args, message) => {
  const probes = { mail: { state: 'degraded', checked: false, reason: 'half-configured, so it is off' } }
  const url = await answering({ state: 'degraded', build: 'b1', probes })
  const { code, stdout } = await run(['health', ...url, '--format', 'junit', ...args])
  expect(code).toBe(message === undefined ? 0 : 1)
  expect(await junitFaults(stdout)).toEqual([])
  const failure = message === undefined ? '' : `<failure type="verdict" message="${message}`
  expect(stdout).toContain(`<testcase classname="platform" name="verdict" time="0.0000">${failure}`)
  expect(stdout).toContain(`failures="${message === undefined ? 0 : 1}" errors="0"`)
  expect(stdout).toContain('<system-out>degraded: half-configured, so it is off</system-out>')
})

test('prom has one HELP and TYPE a metric, and escapes its labels', async () => {
  const text = await health('prom')
  const names = text
    .split('\n')
    .filter((line) => line.startsWith('# TYPE'))
    .map((line) => line.split(' ')[2])
  expect(new Set(names).size).toBe(names.length)
  for (const line of text.trimEnd().split('\n'))
    expect(line).toMatch(
      /^(?:# (?:HELP|TYPE) \S+ .+|[a-z_]+(?:\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? -?[\d.e+-]+)$/,
    )
  expect(text).toContain('platformctl_remote_passed 0\n')
  expect(text).toContain('platformctl_remote_build_info{service="web",build="b\\"1"} 1\n')
  expect(text).toContain('platformctl_remote_build_skew 1\n')
  const api = await serve((_, response) => response.end(healthBody({ service: 'api' })))
  const alike = await run(['health', ...(await answering({})), `api=${api}`, '--format', 'prom'])
  expect(alike.stdout).toContain('platformctl_remote_build_skew 0\n')
  expect(text).toContain('platformctl_remote_service_up{service="api"} 0\n')
  expect(text).toContain('platformctl_remote_unreached{service="agent",cause="connect_refused"} 1\n')
  expect(text).toContain('platformctl_remote_probe_seconds{service="api",probe="job_store"} 0.0035\n')
  expect(text).toMatch(/platformctl_remote_phase_seconds\{service="web",phase="first_byte"\} 0\.\d{1,6}\n/)
})
