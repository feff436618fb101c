import type { Configure } from '../context.ts'
import { wrongUsage } from '../exit.ts'
import { printText } from '../print.ts'

export const configure: Configure = (command, context, settle) => {
  command
    .description('Print a runbook: what to do, how to know that it worked, how to go back.')
    .argument('[name]', 'its name, as alerts say it (default: the list)', 'README')
    .addHelpText(
      'after',
      '\nExit codes: 0 printed, 2 there is no such runbook.\n\nExamples:\n  platformctl runbook\n  platformctl runbook mail-refused',
    )
    .action(async (name: string) => {
      const { fileNames, packageRoot, readPackageFile } = await import('../../core/package-files.ts')
      const files = await fileNames(`${packageRoot()}/runbooks`)
      const names = files.flatMap((file) => (file.endsWith('.md') ? file.slice(0, -3) : []))
      if (!names.includes(name))
        throw wrongUsage(`there is no runbook ${name}. There are: ${names.sort().join(', ')}.`)
      settle(printText(context, await readPackageFile(`runbooks/${name}.md`)))
    })
}
