import type { StoreAddress } from '../../core/env/settings.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { printJson } from '../print.ts'
import type { Job } from './job.ts'

export async function verify({
  context,
  options,
  address,
  maintenance,
  analyticsMaintenance,
}: Job): Promise<ExitCode> {
  const result = await (await maintenance()).verify(context.clock.now())
  const analytics = await (await analyticsMaintenance())?.verify(context.clock.now())
  const code = result.ok && analytics?.ok !== false ? EXIT.passed : EXIT.failed
  if (options.format === 'json') {
    printJson(context, 'db verify', { result, ...(analytics && { analytics }) })
    return code
  }
  for (const fault of result.faults) context.stdout.write(`✖ ${fault}\n`)
  if (result.moreFaults > 0) context.stdout.write(`… and ${result.moreFaults} more\n`)
  const subscriptions = result.checked === 1 ? '1 subscription is' : `${result.checked} subscriptions are`
  // A server watches over its own files; what it holds was looked at, not how it lies on the disk.
  const sound = address.kind === 'postgres' ? '' : 'the file is sound, and '
  context.stdout.write(
    result.ok ? `✓ ${sound}${subscriptions} consistent\n` : `✖ failed; ${failure(address, result.damaged)}\n`,
  )
  if (analytics === undefined) return code
  for (const fault of analytics.faults) context.stdout.write(`✖ analytics: ${fault}\n`)
  context.stdout.write(
    analytics.ok
      ? '✓ the file of analytics is sound\n'
      : '✖ failed; the file of analytics is damaged: restore a backup (platformctl db restore), or move it away\n',
  )
  return code
}

function failure(address: StoreAddress, damaged: boolean): string {
  if (damaged) return 'the file is damaged: restore a backup (platformctl db restore)'
  return address.kind === 'postgres' ? 'some rows are inconsistent' : 'the file itself is sound'
}
