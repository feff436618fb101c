import type { Job } from '../commands/db.ts'
import { EXIT, type ExitCode } from '../exit.ts'

export async function verify({ context, options, care, analyticsCare }: Job): Promise<ExitCode> {
  const result = await (await care()).verify(context.clock.now())
  const analytics = await (await analyticsCare())?.verify(context.clock.now())
  const code = result.ok && analytics?.ok !== false ? EXIT.passed : EXIT.failed
  if (options.format === 'json') {
    context.stdout.write(
      (await import('../output/json.ts')).jsonText({ version: 1, result, ...(analytics && { analytics }) }),
    )
    return code
  }
  for (const fault of result.faults) context.stdout.write(`✖ ${fault}\n`)
  if (result.moreFaults > 0) context.stdout.write(`… and ${result.moreFaults} more\n`)
  const subscriptions = result.checked === 1 ? '1 subscription' : `${result.checked} subscriptions`
  context.stdout.write(
    result.ok
      ? `✓ the file is sound, and ${subscriptions} keep what the course promises\n`
      : `✖ failed; ${result.damaged ? 'the file is damaged: restore a backup (platformctl db restore)' : 'the file itself is sound'}\n`,
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
