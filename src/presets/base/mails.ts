import { once } from '../../core/calls.ts'
import { type MailDefinition, type MailSet, NOTICE_SLOTS } from '../../core/mail/definition.ts'
import type { CompiledMails } from '../../core/mail/template.ts'

/** The mails that the engine itself sends. */
export const baseMails = [
  {
    name: 'subscription-confirmation',
    slots: { confirmUrl: 'url' },
    ask: {
      by: 'person',
      inputs: [],
      resolve: async (_, { asker, confirmAgain }) => ({ answer: await confirmAgain(asker.email) }),
    },
  },
  { name: 'status-confirmation', slots: { confirmUrl: 'url' } },
  { name: 'status-notice', slots: NOTICE_SLOTS },
  {
    name: 'magic-link',
    slots: { signInUrl: 'url' },
    allowance: 'sign-in',
    ask: {
      by: 'service',
      inputs: ['loginRequestId'],
      async resolve({ loginRequestId: id = '' }, { directory, now, absolute }) {
        const login = await directory.findLoginRequest({ id, now })
        return login && { to: login.address, slots: { signInUrl: absolute(login.url) }, about: `login.${id}` }
      },
    },
  },
  {
    name: 'welcome',
    slots: { startUrl: 'url' },
    ask: {
      by: 'person',
      inputs: [],
      resolve: (_, { asker, absolute }) => ({
        to: asker.email,
        slots: { startUrl: absolute('') },
        about: `welcome.${asker.subject}`,
      }),
    },
  },
] as const satisfies readonly MailDefinition[]

/** Mails that come compiled with the package, loaded when first asked for. */
export const shipped = (load: () => Promise<{ readonly default: unknown }>) =>
  // The JSON's inferred type is its literal shape; the compiler that wrote it returns compiled mails.
  once(async () => (await load()).default as CompiledMails)

const folder = { path: 'templates/base', shipped: true }

const compiled = shipped(() => import('../../../templates/compiled/base.json', { with: { type: 'json' } }))
const german = shipped(() => import('../../../templates/compiled/base.de.json', { with: { type: 'json' } }))
const inGerman = { path: 'templates/base/de', shipped: true, language: 'de' }

/** In English and German; a layout takes name and colors from the platform. */
export const baseMailSet: MailSet = {
  definitions: baseMails,
  folders: [folder],
  compiled,
  translations: [
    { language: 'en', folder, compiled },
    { language: 'de', folder: inGerman, compiled: german },
  ],
}
