import { SUPPRESSION_CAUSES } from '../../core/mail/feedback/event.ts'
import type { SuppressionList } from '../../core/mail/feedback/suppressions.ts'
import { type CommandData, commandOn, withPlatform } from '../command.ts'
import { type Context, failure, operatorOf, wrongUsage } from '../context.ts'
import { LARGEST_LIST, readTextFile } from '../environment.ts'
import { addressOf, choice, reason, required } from '../inputs.ts'
import { iso } from '../output/text.ts'

const listCommand = commandOn<SuppressionList>((context, values, work) =>
  withPlatform(context, values, async (platform) => work(await platform.mailService.suppressionList())),
)

const ADDRESS = { '<address>': 'the address' } as const
const REASON = { '--reason <text>': required('why, for the history and the audit log', reason) } as const
const cause = choice('why: hard-bounce stops sign-in mail too', SUPPRESSION_CAUSES, { kind: 'cause' })

const list = listCommand({
  summary: 'every suppressed address with cause, time, source and reason',
  examples: ['', '--format json'],
  document: 'email suppressions list',
  async run(_, __, found) {
    const suppressions = (await allOf(found)).map(({ identity, at, ...rest }) => ({
      address: identity,
      at: iso(at),
      ...rest,
    }))
    const lines = suppressions.map(
      ({ address, at, cause, source, reason }) =>
        `${at}  ${cause.padEnd(11)}  ${address}  (${source}: ${reason})\n`,
    )
    return { json: { suppressions }, text: lines.join('') || 'no address is suppressed\n' }
  },
})

const OUTCOMES = {
  added: 'suppressed; its subscriptions have ended',
  known: 'it is suppressed already, by this cause or one that stops as much mail',
  erased: 'this address was erased: no course mails it; other mail is now held back too, by its hash',
} as const

const add = listCommand({
  summary: 'suppress an address and end its subscriptions',
  examples: ['ada@example.com --reason "asked by phone"'],
  document: 'email suppressions add',
  inputs: { ...ADDRESS, '--cause <cause>': { ...cause, byDefault: 'manual' }, ...REASON },
  async run(context, { address, cause = 'manual', reason }, found) {
    const { suppressAddress } = await import('../../core/mail/feedback/suppressions.ts')
    const outcome = await suppressAddress(found, { ...changeOf(context, address), cause, reason })
    return { json: { outcome }, text: `${OUTCOMES[outcome]}\n` }
  },
})

const remove = listCommand({
  summary: 'let an address be mailed again; its subscriptions stay ended until the person subscribes again',
  examples: ['ada@example.com --reason "new mailbox"'],
  document: 'email suppressions remove',
  inputs: { ...ADDRESS, ...REASON },
  async run(context, { address, reason }, found) {
    const { releaseAddress } = await import('../../core/mail/feedback/suppressions.ts')
    const outcome = await releaseAddress(found, { ...changeOf(context, address), reason })
    if (outcome === undefined)
      throw failure('this address is not suppressed: platformctl email suppressions list shows all that are.')
    return {
      json: { outcome: 'removed' },
      text: `it can be mailed again; ${outcome === 'erased' ? 'it was erased, so no course mails it' : 'a course starts when it subscribes anew'}\n`,
    }
  },
})

const importList = listCommand({
  summary:
    'add the addresses of a provider’s CSV export; a cause comes from the words and status codes of each line',
  examples: ['bounces.csv', 'complaints.csv --cause complaint'],
  document: 'email suppressions import',
  inputs: { '<file>': 'the CSV file; its first line names the columns', '--cause <cause>': cause },
  async run(context, { file, cause }, found) {
    const list = await import('../../core/mail/feedback/suppressions.ts')
    const text = await readTextFile(context, file, LARGEST_LIST)
    try {
      const { suppressions, passing } = list.readSuppressionCsv(text, cause)
      const counts = await list.importSuppressions(found, { ...by(context), rows: suppressions, file })
      return {
        json: { ...counts, passing },
        text: `${counts.added} added, ${counts.known} known, ${counts.skipped} skipped (malformed or erased), ${passing} left out because the address may exist\n`,
      }
    } catch (error) {
      throw error instanceof list.SuppressionCsvError ? wrongUsage(`${file}: ${error.message}`) : error
    }
  },
})

const exportList = listCommand({
  summary: 'print the list as CSV, as import reads it',
  examples: ['> suppressed.csv'],
  async run(_, __, found) {
    const { suppressionCsv } = await import('../../core/mail/feedback/suppressions.ts')
    return suppressionCsv(await allOf(found))
  },
})

export const suppressions: CommandData = {
  summary: 'the addresses that get no mail: list, add, remove, import, export',
  description:
    'The addresses that get no mail. Hard bounces and complaints are added by themselves; sign-in mail stops for hard bounces only.',
  examples: ['list', 'remove ada@example.com --reason "new mailbox, asked by phone"'],
  commands: { list, add, remove, import: importList, export: exportList },
}

async function allOf(found: SuppressionList) {
  const { suppressedAddresses } = await import('../../core/mail/feedback/suppressions.ts')
  return Array.fromAsync(suppressedAddresses(found.store))
}

function by(context: Context) {
  const { clock, random } = context
  return { operator: operatorOf(context), clock, random }
}

function changeOf(context: Context, address: string) {
  return { ...by(context), identity: addressOf(address).identity }
}
