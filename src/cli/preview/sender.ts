import type { Environment } from '../../core/env/environment.ts'
import { readSettings } from '../../core/env/settings.ts'
import { validate } from '../../core/env/validate.ts'
import type { SendEmailResult } from '../../core/mail/send-email.ts'
import type { CompiledMail } from '../../core/mail/template.ts'
import { openPlatform } from '../../daemon/platform.ts'
import type { Context } from '../context.ts'

export type PreviewSender = ReturnType<typeof openSender>

/** Sends one mail with sample values, as the environment says. */
export function openSender(
  { platform, clock, random }: Context,
  env: Environment,
  recipients: readonly string[] = [],
) {
  return {
    /** The only addresses that the page may send to. */
    recipients,
    /** Settings to configure before it can send; undefined if it can. */
    missing:
      missingOf(platform, env) ??
      (recipients.length === 0
        ? 'No address to send to. Start the preview again with --to ADDRESS.'
        : undefined),
    async send({
      mail,
      name,
      slots,
      to,
    }: {
      readonly mail: CompiledMail
      readonly name: string
      /** In place of samples. */
      readonly slots: Readonly<Record<string, string>>
      readonly to: string
    }): Promise<SendEmailResult> {
      const compiled = async () => ({ [name]: mail })
      const opened = openPlatform({
        env,
        platform: { ...platform, mails: { ...platform.mails, compiled } },
        clock,
        random,
      })
      try {
        return await opened.sendEmail({
          template: name,
          to,
          slots: Object.fromEntries(
            Object.entries(mail.slots).map(([slot, { sample }]) => [slot, slots[slot] ?? sample]),
          ),
          about: `test.${Buffer.from(random.bytes(12)).toString('base64url')}`,
        })
      } finally {
        await opened.close()
      }
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
