import type { Cell } from '../product.ts'
import type { World } from '../world.ts'
import { flapping, type Injection, usePlatform, type Ways, wayOf } from './injection.ts'

export function mail({ how, when }: Cell, world: World): Injection {
  const { mail: server } = world
  const says = (word: string, text: string | null) => ({
    inject: () => {
      server.reply = (asked) => (asked === word ? (text ?? 'cut') : undefined)
    },
    heal: () => {
      server.reply = () => undefined
    },
  })
  const hows: Ways = {
    gone: {
      cause: /cannot be reached|refused|connection/,
      inject: () => world.relays.mail.mode('refuse'),
      heal: () => world.relays.mail.mode('pass'),
    },
    slow: {
      cause: /did not answer|in time|timed? ?out|silent/i,
      // RFC 5321 gives a server ten minutes for its last reply.
      moreMs: when === 'drain' ? 600_000 : 150_000,
      inject: () => world.relays.mail.mode('stall'),
      async heal() {
        await world.relays.mail.mode('refuse')
        await world.relays.mail.mode('pass')
      },
    },
    full: { cause: /452/, ...says('MAIL', '452 4.3.1 insufficient system storage') },
    lying: { cause: /unknown|broke/, ...says('END', null) },
    flapping: {
      cause: /cannot be reached|refused|connection/,
      ...flapping(
        () => world.relays.mail.mode('refuse'),
        () => world.relays.mail.mode('pass'),
      ),
    },
    'wrong owner': { cause: /553|sender/, ...says('MAIL', '553 5.7.1 sender address not owned by user') },
    'wrong version': {
      cause: /SMTP|greeting|refuses|answer/i,
      ...says('CONNECT', 'HTTP/1.1 400 Bad Request\r\n\r\nthis is not SMTP'),
    },
    expired: {
      cause: /535|expired|authorisation +is refused/,
      ...says('AUTH', '535 5.7.8 the password has expired'),
    },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      if (how === 'expired') {
        world.settings.MAILER_SMTP_URL = 'smtp://course@127.0.0.1:2525'
        world.settings.MAILER_API_KEY = 'kX3vQ8tR2mZ7pL5w'
      }
      server.once = how === 'wrong version' || how === 'expired' || how === 'flapping'
      if (when === 'drain') await world.seed(60)
    },
    // No probe sends mail: what is refused in the middle of it is met by visitors, and is over ten minutes later.
    ...(['full', 'lying', 'wrong owner'].includes(how) && { use: usePlatform, moreMs: 720_000 }),
  }
}
