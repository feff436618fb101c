import type { MailDefinition } from '../../src/core/mail/definition.ts'
import type { Outcome } from '../../src/core/mail/mailer.ts'
import { HTTP_OUTCOMES, type OutcomeTable, SMTP_OUTCOMES } from '../../src/core/mail/outcome.ts'
import { SHOWN } from './platform.ts'

const SCOPES = {
  connection: 'sending stops until the next run, and lessons lose no attempt.',
  message: 'the message waits out its backoff.',
  sender:
    'either your settings or account are at fault, or this message: whether other messages are accepted meanwhile decides.',
} satisfies Record<Extract<Outcome, { kind: 'transient' }>['scope'], string>

/** docs/reference/mail.md: made from the definitions and the outcome tables. */
export function mailReference(definitions: readonly MailDefinition[]): string {
  const mails = definitions.map(
    ({ name, slots = {} }) =>
      `| \`${name}\` | ${Object.entries(slots)
        .map(([slot, type]) => `\`${slot}\` (${type})`)
        .join(', ')} |`,
  )
  const scopes = Object.entries(SCOPES)
    .map(([scope, means]) => `*Transient, ${scope}*: ${means}`)
    .join(' ')
  return `# Mail

<!-- Made by \`npm run make\`. -->

${SHOWN} \`platformctl email list\` shows yours. How to [write mails](../guides/templates.md), what a [mail API](mail-api.md) is sent, and what [lint](findings.md#mails) finds.

## The mails and what is filled in

| Mail | Slots |
|---|---|
${mails.join('\n')}

## Outcomes over SMTP

A message is *sent* or has one of these outcomes; the first row that fits decides. ${scopes} *Permanent*: it is given up, and a *hard bounce* ends the subscription. *Unknown*: it may have been delivered; it is tried again with the same idempotency key.

${table(SMTP_OUTCOMES)}

## Outcomes of a mail API

Any 2xx is *sent*.

${table(HTTP_OUTCOMES)}
`
}

function table<Fault>(rows: OutcomeTable<Fault>): string {
  const lines = Object.entries(rows).map(
    ([id, { when, outcome }]) => `| \`${id}\` | ${when} | ${kindOf(outcome)} | ${outcome.reason} |`,
  )
  return `| Row | When | Outcome | Reason given |\n|---|---|---|---|\n${lines.join('\n')}`
}

function kindOf(outcome: OutcomeTable<never>[string]['outcome']): string {
  if (outcome.kind === 'transient') return `transient, ${outcome.scope}`
  return outcome.kind === 'permanent' && outcome.hardBounce ? 'permanent, hard bounce' : outcome.kind
}
