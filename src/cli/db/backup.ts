import path from 'node:path'
import type { Job } from '../commands/db.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { rowsText, sizeText } from './text.ts'

export async function backup({ context, options, care }: Job, name: string): Promise<ExitCode> {
  const result = await (await care()).backup(path.resolve(context.cwd, name))
  if (options.format === 'json') {
    context.stdout.write((await import('../output/json.ts')).jsonText({ version: 1, result }))
    return EXIT.passed
  }
  context.stdout.write(
    `${name}: ${sizeText(result.bytes)}, schema ${result.version}, rows: ${rowsText(result.counts)}\nchecked, packed, read back and compared\n`,
  )
  return EXIT.passed
}

export async function restore({ context, options, address }: Job, name: string): Promise<ExitCode> {
  const { restoreStore } = await import('../../core/store/open.ts')
  const result = await restoreStore(address, {
    from: path.resolve(context.cwd, name),
    force: options.force === true,
    now: context.clock.now(),
  })
  for (const fault of result.faults) context.stderr.write(`restored as it was: ${fault}\n`)
  if (options.format === 'json') {
    context.stdout.write((await import('../output/json.ts')).jsonText({ version: 1, result }))
    return EXIT.passed
  }
  const kept = result.kept === undefined ? '' : `the store before it is kept as ${result.kept}\n`
  context.stdout.write(
    `restored ${name}: schema ${result.version}, rows: ${rowsText(result.counts)}\n${kept}`,
  )
  return EXIT.passed
}
