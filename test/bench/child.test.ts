import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { first, stopped } from '../../bench/child.ts'

const CHILD = new URL('../../bench/child.ts', import.meta.url).href
const node = (code: string) => spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'ignore'] })

test('rejects when a server ends before it serves, instead of waiting', async () => {
  const child = node('process.exit(3)')
  await expect(first(child, once(child.stdout, 'data'))).rejects.toThrow(/ended with 3 before it served/)
})

test('stopping what has ended already does not wait for its end', async () => {
  const child = node('')
  await once(child, 'exit')
  await expect(stopped(child)).resolves.toBeUndefined()
})

test('processes that a benchmark started end with it, even when it just exits', async () => {
  // The child holds the standard output open: its end is seen by the end of that.
  const { exitCode, timedOut } = await execa(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { spawn } from 'node:child_process'
       import { owned } from ${JSON.stringify(CHILD)}
       owned(spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: ['ignore', 'inherit', 'ignore'] }))
       process.exit(1)`,
    ],
    { reject: false, timeout: 10_000 },
  )
  expect({ exitCode, timedOut }).toEqual({ exitCode: 1, timedOut: false })
})
