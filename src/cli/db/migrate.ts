import type { ExitCode } from '../exit.ts'
import { printJson, printText } from '../print.ts'
import type { Job } from './job.ts'

export async function migrate(job: Job): Promise<ExitCode> {
  const { context, options } = job
  if (options.plan) return plan(job)
  const result = await (await job.maintenance()).migrate()
  if (options.format === 'json') return printJson(context, 'db migrate', { result })
  return printText(
    context,
    result.from === result.to
      ? `nothing to do: schema ${result.to}\n`
      : `migrated from schema ${result.from} to ${result.to}\n`,
  )
}

/** Shows the steps; a store that does not exist yet is not made for it. */
async function plan({ context, options, address, maintenance }: Job): Promise<ExitCode> {
  const { assertExists } = await import('../local.ts')
  await assertExists(address)
  const steps = await (await maintenance()).pending()
  if (options.format === 'json') return printJson(context, 'db migrate', { steps })
  for (const { version, statements } of steps) {
    context.stdout.write(`schema ${version}\n${statements.map((statement) => `  ${statement}\n`).join('')}`)
  }
  const count = steps.length === 1 ? '1 step' : `${steps.length} steps`
  return printText(context, steps.length === 0 ? 'nothing to do\n' : `${count}; nothing was changed\n`)
}
