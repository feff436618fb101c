import type { Cell } from '../product.ts'
import type { World } from '../world.ts'
import { flapping, type Injection, probed, STORE_OPTIONS, type Ways, wayOf } from './injection.ts'

export function webhook({ how }: Cell, world: World): Injection {
  const status = (code: number) => ({
    cause: new RegExp(`webhook answered ${code}`),
    inject: () => {
      world.webhook.status = code
    },
    heal: () => {
      world.webhook.status = 204
    },
  })
  const { webhook: way, data } = world.relays
  const silent = /webhook did not answer/
  const hows: Ways = {
    gone: { cause: silent, inject: () => way.mode('refuse'), heal: () => way.mode('pass') },
    slow: {
      cause: silent,
      inject: () => way.mode('stall'),
      async heal() {
        await way.mode('refuse')
        await way.mode('pass')
      },
    },
    full: status(429),
    flapping: {
      cause: silent,
      ...flapping(
        () => way.mode('refuse'),
        () => way.mode('pass'),
      ),
    },
    'wrong owner': status(403),
    'wrong version': status(400),
    expired: status(410),
  }
  const { cause, inject, heal, moreMs } = wayOf(hows, how)
  return {
    cause,
    // The other channel tells of another fault meanwhile.
    by: 'mail',
    look: `platformctl alert list --all ${STORE_OPTIONS}`,
    moreMs: 120_000 + (moreMs ?? 0),
    prepare() {
      probed(world, 'http://127.0.0.1:7002')
      world.settings.ALERT_EMAIL_TO = 'ops@example.test'
    },
    async inject(running) {
      await inject(running)
      await data.mode('refuse')
    },
    async heal() {
      await heal()
      await data.mode('pass')
    },
  }
}
