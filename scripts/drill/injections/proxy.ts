import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect } from 'node:net'
import { authority } from '../../../test/support/outside.ts'
import type { Cell } from '../product.ts'
import { joined, listening, OUTSIDE, relay, type World } from '../world.ts'
import { flapping, type Injection, probed, type Ways, wayOf } from './injection.ts'

export async function proxy({ how, when }: Cell, world: World): Promise<Injection> {
  const foreign = await authority('The proxy that reads along')
  const own = await foreign.issue({ host: 'data.example.test' })
  let answer: 'pass' | 'lying' | string = 'pass'
  const server = createHttpServer((_, response) => response.writeHead(400).end())
  server.on('connect', (asking, near) => {
    near.on('error', () => {})
    if (answer !== 'pass' && answer !== 'lying') return void near.end(answer)
    near.write('HTTP/1.1 200 Connection established\r\n\r\n')
    const [, port = '443'] = (asking.url ?? '').split(':')
    joined(near, answer === 'lying' ? connect(4440, '127.0.0.1') : connect(Number(port), OUTSIDE))
  })
  await listening(server, 3129)
  await listening(createHttpsServer(own, world.certificates.answerHttp), 4440)
  const way = await relay(3128, 3129)
  world.environment.HTTPS_PROXY = 'http://127.0.0.1:3128'
  world.environment.NO_PROXY = '127.0.0.1,localhost'
  const says = (text: string) => ({
    inject: () => {
      answer = text
    },
    heal: () => {
      answer = 'pass'
    },
  })
  const cause = /proxy of this machine|through the proxy/
  const hows: Ways = {
    gone: { cause, inject: () => way.mode('refuse'), heal: () => way.mode('pass') },
    slow: {
      cause,
      moreMs: 60_000,
      inject: () => way.mode('stall'),
      async heal() {
        await way.mode('refuse')
        await way.mode('pass')
      },
    },
    full: { cause, ...says('HTTP/1.1 503 Too many connections\r\ncontent-length: 0\r\n\r\n') },
    lying: { cause: /not signed by an authority|certificate/i, ...says('lying') },
    flapping: {
      cause,
      ...flapping(
        () => way.mode('refuse'),
        () => way.mode('pass'),
      ),
    },
    'wrong owner': {
      cause,
      ...says('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n'),
    },
    'wrong version': { cause, ...says('\u0005\u0000\u0005\u0001') },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      probed(world, 'https://data.example.test:4430')
      delete world.settings.MAILER_SMTP_URL
      world.settings.MAILER_API_URL = 'https://data.example.test:4430/emails'
      world.settings.MAILER_API_KEY = 'kX3vQ8tR2mZ7pL5w'
      if (when === 'drain') await world.seed()
    },
    // A connection that it has let through stays.
    early: true,
  }
}
