import type { Job } from '../commands/db.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { agoText, rowsText, sizeText, writeLines } from './text.ts'

export async function status({ context, options, care }: Job): Promise<ExitCode> {
  const found = await (await care()).status()
  if (options.format === 'json') {
    context.stdout.write((await import('../output/json.ts')).jsonText({ version: 1, store: found }))
    return EXIT.passed
  }
  const { version, latest, walBytes, verifiedAt } = found
  const schema =
    version === latest
      ? 'up to date'
      : version < latest
        ? `this build brings ${latest}: platformctl db migrate`
        : `newer than this build’s ${latest}, which can run on it`
  writeLines(context, [
    ['store', `${found.kind} ${found.location}`],
    ['schema', `${version} (${schema})`],
    [
      'size',
      `${sizeText(found.bytes)}${walBytes === undefined ? '' : `, write-ahead log ${sizeText(walBytes)}`}`,
    ],
    ['rows', rowsText(found.counts)],
    [
      'verified',
      verifiedAt === undefined
        ? 'never: platformctl db verify'
        : `${agoText(verifiedAt, context.clock.now())} (${new Date(verifiedAt).toISOString()})`,
    ],
  ])
  return EXIT.passed
}
