import { expect, onTestFinished, test, vi } from 'vitest'
import { gatherStatus } from '../../src/cli/status/status.ts'
import type { PlatformDefinition } from '../../src/platform/definition.ts'
import { registerPlatform } from '../../src/platform/read-env.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { testContext } from '../support/context.ts'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder } from '../support/folder.ts'
import { keptLog } from '../support/opened.ts'
import { arrivalStore, REST_TOKEN, restStore } from '../support/rest-store.ts'

const definition: PlatformDefinition = {
  preset: 'base',
  services: { web: {}, worker: { port: 4100, address: 'WORKER_URL', health: '/up' } },
  groups: {
    worker: {
      services: ['web'],
      unlocks: 'the worker',
      absent: 'there is none',
      variables: { WORKER_URL: { kind: 'url' } },
    },
  },
}

test('a service that only the definition names is served, checked, recorded, shown, described and limited as those of the default platform', async () => {
  const shared = await restStore(arrivalStore(Date.now))
  const { log, told } = keptLog()
  const platform = resolvePlatform(definition, { folder: '/' })
  const dataFolder = await emptyFolder()
  const daemon = await startLearningDaemon({
    platform,
    services: ['web', 'worker'],
    ports: { web: 0, worker: 0 },
    env: { SHAREDSTORE_REST_URL: shared.url, SHAREDSTORE_REST_TOKEN: REST_TOKEN },
    dataFolder,
    log,
  })
  onTestFinished(() => daemon.close())
  const { web = '', worker = '' } = daemon.urls
  const json = async (url: string) => (await fetch(url)).json()
  // Web knows where it listens, although WORKER_URL is not set.
  expect(await json(`${web}/api/health?deep=1`)).toMatchObject({
    probes: { worker: { state: 'ok', checked: true } },
  })
  expect(await json(`${web}/openapi.json`)).toMatchObject({
    paths: { '/up': { get: { servers: [{ url: worker, description: 'worker' }] } } },
  })
  // Recorded by its own process, and not only as web sees it.
  const recorded = async () => {
    const { services } = (await json(`${web}/status.json`)) as { services: { service: string }[] }
    return services.find(({ service }) => service === 'worker')
  }
  await expect.poll(recorded).toMatchObject({ state: 'ok' })
  expect(await recorded()).not.toHaveProperty('seenFrom')
  const status = await gatherStatus(testContext({ platform }).context, { data: dataFolder, envFile: [] })
  expect(status.services).toMatchObject([{ service: 'web' }, { service: 'worker', url: worker, state: 'ok' }])
  const before = shared.commands.length
  const origin = 'http://localhost:3000'
  const { headers } = await fetch(`${worker}/api/configuration`, { headers: { origin } })
  expect(headers.get('access-control-allow-origin')).toBe(origin)
  expect(shared.commands.length).toBeGreaterThan(before)
  // Browsers may call it from localhost alone.
  expect(told('cors_at_localhost')).toHaveLength(1)
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
  onTestFinished(() => warned.mockRestore())
  registerPlatform(definition, {})
  expect(warned.mock.calls.map(([, kind]) => kind)).toEqual(['RuntimeWarning'])
})
