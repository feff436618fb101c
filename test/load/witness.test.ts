import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { nodeListener } from '../../src/daemon/node-listener.ts'
import { handlersOf, openPlatform } from '../../src/daemon/platform.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { bin, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { serve } from '../support/servers.ts'

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

/** Rounds a second apart instead of half a minute: a preloaded module shortens the timers of that length alone. */
const FAST = `--import=data:text/javascript,${encodeURIComponent(
  `const set = setTimeout; globalThis.setTimeout = (work, ms, ...rest) => set(work, ms === ${ROUND_S * 1000} ? 1000 : ms, ...rest)`,
)}`

test('three witnesses tell once that the platform was killed and once that it is back, though they are killed too', {
  timeout: 120_000,
}, async () => {
  const secrets = { a: secret, b: secret.replace('-a-', '-b-'), c: secret.replace('-a-', '-c-') }
  type Name = keyof typeof secrets
  const names = Object.keys(secrets) as Name[]
  const alerts: { readonly title: string; readonly text: string }[] = []
  const inbox = await serve(async (request, response) => {
    const body = await new Response(Readable.toWeb(request) as ReadableStream).json()
    alerts.push((body as { data: (typeof alerts)[number] }).data)
    response.end()
  })
  const [folder, port] = [await emptyFolder(), await freePort()]
  const startPlatform = async () => {
    const WITNESS_SECRET = Object.entries(secrets)
      .map((pair) => pair.join(':'))
      .join()
    const args = ['--service', 'web', '--web-port', String(port)]
    const daemon = await startDaemon(args, { cwd: folder, env: { WITNESS_SECRET }, services: [] })
    onTestFinished(() => void daemon.stop('SIGKILL'))
    return daemon
  }
  const homes = new Map<Name, { readonly cwd: string; readonly url: string }>()
  for (const name of names)
    homes.set(name, { cwd: await emptyFolder(), url: `http://127.0.0.1:${await freePort()}` })
  const homeOf = (name: Name) => homes.get(name) ?? { cwd: '', url: '' }
  const startWitness = (name: Name) => {
    const { cwd, url } = homeOf(name)
    const peers = names.filter((one) => one !== name).flatMap((one) => ['--peer', homeOf(one).url])
    const args = [
      '--platform',
      `http://127.0.0.1:${port}`,
      '--name',
      name,
      '--port',
      new URL(url).port,
      ...peers,
    ]
    const child = execa(process.execPath, [bin, 'witness', ...args], {
      cwd,
      env: { WITNESS_SECRET: secrets[name], ALERT_WEBHOOK_URL: inbox, NODE_OPTIONS: FAST },
      reject: false,
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }
  const restarted = async (name: Name) => {
    witnesses.get(name)?.kill('SIGKILL')
    await witnesses.get(name)
    witnesses.set(name, startWitness(name))
  }
  const viewsOf = (path: string) =>
    Promise.all(
      names.map((name) =>
        fetch(`${homeOf(name).url}${path}`).then(
          (it) => it.json(),
          () => undefined,
        ),
      ),
    )
  const all = (view: object) => names.map(() => expect.objectContaining(view))
  const within = { timeout: 40_000, interval: 200 }

  const first = await startPlatform()
  const witnesses = new Map(names.map((name) => [name, startWitness(name)]))
  await expect.poll(() => viewsOf('/health'), within).toEqual(all({ state: 'ok', platform: 'reachable' }))
  await Promise.all([first.stop('SIGKILL'), restarted('b')])
  await expect
    .poll(() => alerts.map(({ title }) => title), within)
    .toEqual([`127.0.0.1:${port} is unreachable`])
  await expect.poll(() => viewsOf('/health'), within).toEqual(all({ outage: true, silentPeers: [] }))
  // The witness that sent it says what it saw itself.
  const [, teller] = /; from ([abc]): /.exec(alerts[0]?.text ?? '') ?? []
  await restarted(teller as Name)
  const second = await startPlatform()
  await expect.poll(() => viewsOf('/health'), within).toEqual(all({ outage: false, platform: 'reachable' }))
  await expect.poll(() => alerts.length, within).toBe(2)
  for (const child of witnesses.values()) child.kill('SIGTERM')
  const exits = await Promise.all(witnesses.values())
  expect(exits.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
  expect(alerts.map(({ title }) => title)).toEqual([
    `127.0.0.1:${port} is unreachable`,
    `127.0.0.1:${port} is reachable again`,
  ])
  await second.stop()
})
