import { command, type Define } from '../command.ts'
import { wrongUsage } from '../context.ts'
import { value } from '../inputs.ts'

export const define: Define = () =>
  command({
    description: 'Print a runbook: what to do, how to know that it worked, how to go back.',
    exits: '0 printed, 2 there is no such runbook.',
    examples: ['', 'mail-refused'],
    inputs: { '[name]': value('its name, as alerts say it (default: the list)', String, 'README') },
    async run(_, { name }) {
      const { fileNames, packageRoot, readPackageFile } = await import('../../core/package-files.ts')
      const files = await fileNames(`${packageRoot()}/runbooks`)
      const names = files.flatMap((file) => (file.endsWith('.md') ? file.slice(0, -3) : []))
      if (!names.includes(name))
        throw wrongUsage(`there is no runbook ${name}. There are: ${names.sort().join(', ')}.`)
      return await readPackageFile(`runbooks/${name}.md`)
    },
  })
