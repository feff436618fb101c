import { authority } from '../../../test/support/outside.ts'
import type { Cell } from '../product.ts'
import type { World } from '../world.ts'
import { flapping, type Injection, probed, type Ways, wayOf } from './injection.ts'

export function dns({ how, when }: Cell, world: World): Injection {
  const { names } = world
  const usual = names.answer
  const answers = (answer: typeof usual) => ({
    inject: () => {
      names.answer = answer
    },
    heal: () => {
      names.answer = usual
    },
  })
  const hows: Ways = {
    gone: {
      cause: /looked up/,
      inject: () => {
        names.isGone = true
      },
      heal: () => {
        names.isGone = false
      },
    },
    slow: {
      cause: /looked up/,
      inject: () => {
        names.lateMs = 12_000
      },
      heal: () => {
        names.lateMs = 0
      },
    },
    // Mail goes by the name that it found for five minutes.
    lying: { cause: /refused/, moreMs: 330_000, ...answers(() => '127.0.0.99') },
    flapping: {
      cause: /look(?:ed)? up|resol/,
      ...(() => {
        const { inject, heal } = answers(() => 'fails')
        return flapping(inject, heal)
      })(),
    },
    expired: { cause: /does not exist|resolve|not found/, ...answers(() => undefined) },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      probed(world, 'http://data.example.test:7000')
      if (when === 'drain') await world.seed()
    },
    // A name that was found is not looked up again for five minutes.
    early: true,
  }
}

export async function certificate({ how, when }: Cell, world: World): Promise<Injection> {
  const { ours, present, heal } = world.certificates
  const foreign = await authority('Nobody that this machine trusts')
  const both = async (make: (host: string) => ReturnType<typeof ours.issue>) => {
    const [data, mailServer] = [await make('data.example.test'), await make('mail.example.test')]
    return () => present(data, mailServer)
  }
  const expired = await both((host) => ours.issue({ host, from: -90, to: -1 }))
  const old = { maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  const hows: Ways = {
    // No server name is known there, so no certificate is sent.
    gone: {
      cause: /encrypted|TLS|certificate/i,
      inject: () => present(NO_CERTIFICATE, NO_CERTIFICATE),
      heal,
    },
    lying: {
      cause: /for another name|out to another name/,
      inject: await both(() => ours.issue({ host: 'elsewhere.example.test' })),
      heal,
    },
    flapping: { cause: /expired/, ...flapping(expired, heal) },
    'wrong owner': {
      cause: /not signed by an authority|nobody (?:that )?this machine trusts/,
      inject: await both((host) => foreign.issue({ host })),
      heal,
    },
    'wrong version': { cause: /encrypted|TLS|certificate/i, inject: () => present(old, old), heal },
    expired: { cause: /expired/, inject: expired, heal },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      probed(world, 'https://data.example.test:4430')
      world.settings.MAILER_SMTP_URL = 'smtps://mail.example.test:4650'
      world.mail.once = true
      if (when === 'drain') await world.seed(60)
    },
  }
}
/** A server with neither key nor certificate agrees with nobody. */
const NO_CERTIFICATE = {
  ciphers: 'ECDHE-RSA-AES128-GCM-SHA256',
  maxVersion: 'TLSv1.2',
  key: '',
  cert: '',
} as const
