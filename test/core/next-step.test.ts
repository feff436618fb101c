import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { nextStep } from '../../src/core/daemon-record.ts'

const PLACES = {
  definition: '/srv/kiln/platform.config.ts',
  envFiles: ['/etc/kiln.env', '/etc/kiln secrets.env'],
  dataFolder: '/var/lib/kiln',
}

test.each([
  ['platformctl db status', true],
  ['platformctl alert ack aB3-_x', true],
  ['platformctl health --deep', false],
])('%s carries the options that it takes, quoted for a shell', (command, takesData) => {
  const text = nextStep(command, PLACES)
  expect(text).toBe(
    `${command} --config /srv/kiln/platform.config.ts --env-file /etc/kiln.env --env-file '/etc/kiln secrets.env'${takesData ? ' --data /var/lib/kiln' : ''}`,
  )
})

test.skipIf(process.platform === 'win32')('a shell reads back every path as it was', () => {
  const dataFolder = `/var/o'brien $(id) "x"\\\n`
  const text = nextStep('platformctl db status', { definition: null, envFiles: [], dataFolder })
  const words = execFileSync('sh', ['-c', `printf '%s\\0' ${text}`])
    .toString()
    .split('\0')
  expect(words.slice(0, -1)).toEqual(['platformctl', 'db', 'status', '--data', dataFolder])
})
