import { expect, test } from 'vitest'
import { nextSteps } from '../../../src/cli/demo/next-steps.ts'

const usual = { web: 'http://127.0.0.1:3000', api: 'http://127.0.0.1:8000', agent: 'http://127.0.0.1:8100' }

test('on the usual ports health needs the address of one service', () => {
  expect(nextSteps(usual, {})[0]?.[0]).toBe('platformctl health --url web=http://127.0.0.1:3000')
})

test('a service on another port is named, because health would ask the usual one', () => {
  expect(nextSteps({ ...usual, api: 'http://127.0.0.1:8001' }, {})[0]?.[0]).toBe(
    'platformctl health --url web=http://127.0.0.1:3000 api=http://127.0.0.1:8001',
  )
})

test('started by npm start or npx, the commands are written as they would be found', () => {
  const commands = nextSteps(usual, { npm_lifecycle_event: 'start' }).map(([command]) => command)
  expect(commands.every((command) => command.startsWith('npx platformctl '))).toBe(true)
})
