import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { nextSteps } from '../../../src/cli/demo/stage.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { emptyFolder } from '../../support/folder.ts'

const urls = { web: 'http://127.0.0.1:3000', api: 'http://127.0.0.1:8000', agent: 'http://127.0.0.1:8100' }
const free = { services: { web: 3001, api: 8001, agent: 8101 }, preview: 8026 }
const commands = (parts: Partial<Parameters<typeof nextSteps>[0]>) =>
  nextSteps({ services: learning.services, urls, env: {}, free, ...parts }).map(([command]) => command)

test('on the usual ports health needs the address of one service', () => {
  expect(commands({})[0]).toBe('npx -- platformctl health --url web=http://127.0.0.1:3000')
})

test('a service on another port is named, because health would ask the usual one', () => {
  const services = [...learning.services, { name: 'worker', port: 4100, health: '/up' }]
  const moved = { api: 'http://127.0.0.1:8001', worker: 'http://127.0.0.1:4101' }
  expect(commands({ services, urls: { ...urls, ...moved } })[0]).toBe(
    `npx -- platformctl health --url web=${urls.web} api=${moved.api} worker=${moved.worker}`,
  )
})

test('a command on the path is printed by its name, unless npm or npx has put it there', async () => {
  const folder = await emptyFolder()
  await writeFile(path.join(folder, 'platformctl'), '')
  const env = { PATH: `/nowhere${path.delimiter}${folder}` }
  expect(commands({ env }).every((command) => command.startsWith('platformctl '))).toBe(true)
  const underNpm = commands({ env: { ...env, npm_lifecycle_event: 'npx' } })
  expect(underNpm.every((command) => command.startsWith('npx -- platformctl '))).toBe(true)
})

test('the daemon and the preview are printed with ports that the demo does not hold', () => {
  const printed = commands({ free: { ...free, preview: 8027 } })
  expect(printed).toContain('npx -- platformctl email preview --port 8027')
  expect(printed.at(-1)).toContain('--web-port 3001 --api-port 8001 --agent-port 8101')
})
