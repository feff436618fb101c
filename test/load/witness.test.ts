import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { nodeListener } from '../../src/daemon/node-listener.ts'
import { handlersOf, openPlatform } from '../../src/daemon/platform.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'
import { serve } from '../support/servers.ts'

const bin = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))
const secret = 'secret-of-a-0123456789abcdef'
const ROUND_S = 30

const isLinux = process.platform === 'linux'
test.runIf(isLinux)(
  'a witness of ten addresses idles in 40 MB of its own and 0.2 % of a core',
  { timeout: 300_000 },
  async () => {
    const platform = openPlatform({ env: { WITNESS_SECRET: `a:${secret}` }, platform: learning })
    onTestFinished(() => platform.close())
    const { web } = handlersOf(platform)
    if (web === undefined) throw new Error('the platform has no web service')
    const home = await serve(nodeListener(web))
    const peer = await serve((_, response) => response.end('{}'))
    const peers = Array.from({ length: 9 }, (_, index) => ['--peer', `${peer}/${index}`])
    const args = ['witness', '--platform', home, '--name', 'a', '--port', '0', ...peers.flat()]
    const child = execa(process.execPath, [bin, ...args], {
      cwd: await emptyFolder(),
      env: { WITNESS_SECRET: secret },
      reject: false,
    })
    onTestFinished(async () => {
      child.kill('SIGTERM')
      await child
    })
    const read = async (file: string) => readFile(`/proc/${child.pid}/${file}`, 'utf8')
    /** Of the first round and the collection of garbage after the start. */
    const wait = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    await wait(ROUND_S + 10)
    const ticks = async () => {
      const fields = (await read('stat')).split(' ')
      return Number(fields[13]) + Number(fields[14])
    }
    const [before, since] = [await ticks(), performance.now()]
    await wait(4 * ROUND_S)
    const cpuSeconds = ((await ticks()) - before) / 100
    expect(cpuSeconds / ((performance.now() - since) / 1000)).toBeLessThan(0.002)
    // The pages of the Node binary are shared, and the kernel drops them when it needs memory.
    const ownKb = Number(/^RssAnon:\s+(\d+) kB/m.exec(await read('status'))?.[1])
    expect(ownKb).toBeGreaterThan(1000)
    expect(ownKb).toBeLessThan(40 * 1024)
  },
)
