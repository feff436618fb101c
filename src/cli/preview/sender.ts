import { type Environment, readSettings } from '../../core/env/settings.ts'
import { validate } from '../../core/env/validate.ts'
import { type CompiledMail, withSamples } from '../../core/mail/template.ts'
import { openStore } from '../../core/store/open.ts'
import { openPlatform } from '../../daemon/platform.ts'
import type { Context } from '../context.ts'

export type PreviewSender = ReturnType<typeof openSender>

export function openSender(context: Context, env: Environment, recipients: readonly string[] = []) {
  const { platform, clock, random } = context
  return {
    /** The only addresses that the page may send to. */
    recipients,
    /** Settings to configure before it can send; undefined if it can. */
    missing:
      missingOf(platform, env) ??
      (recipients[0] ? undefined : 'No address to send to. Start the preview again with --to ADDRESS.'),
    /** `slots` are in place of samples. */
    async send(mail: CompiledMail, template: string, to: string, slots?: Readonly<Record<string, string>>) {
      const mails = { ...platform.mails, compiled: async () => ({ [template]: mail }) }
      // In memory: a test does not claim the store of the environment, and goes out while mail is paused.
      const store = await openStore()
      const opened = openPlatform({ env, platform: { ...platform, mails }, store, clock, random })
      const about = `test.${Buffer.from(random.bytes(12)).toString('base64url')}`
      return opened
        .sendEmail({ template, to, slots: withSamples(mail, slots), about })
        .finally(() => opened.close().then(store.close))
    },
  }
}

function missingOf(platform: Context['platform'], env: Environment): string | undefined {
  if (readSettings(platform, env).mail !== undefined) return undefined
  const wrong = validate(platform.contract, env).findings.find(
    ({ group, severity }) => group === 'mail' && severity === 'error',
  )
  const fix =
    wrong?.fix ?? 'Set MAILER_FROM and MAILER_SMTP_URL, or MAILER_FROM, MAILER_API_KEY and MAILER_PROVIDER.'
  return `Mail is not configured. ${fix} Then start the preview again, with --env-file FILE if the values are in a file.`
}
