import { Argument } from 'commander'
import type { Configure } from '../context.ts'
import type { Target } from '../deploy/files.ts'
import type { DeployOptions } from '../deploy/run.ts'
import { formatOption } from '../options.ts'

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Write the files that run this platform on a server, made from its definition: services, ports, mails, lessons, secrets as files. Tell later what has drifted.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  platformctl deploy init systemd\n  platformctl deploy init compose --out ops\n  platformctl deploy check',
    )
  const outOption = [
    '--out <folder>',
    'where the files are (default: deploy beside the definition; for systemd and kubernetes, a folder in it)',
  ] as const
  command
    .command('init')
    .summary('write the files of one way of deploying')
    .description(
      'Write the files of one way of deploying. The first lines of each say how to use it. Nothing is overwritten: a file that is there stays as it is.',
    )
    .addArgument(
      new Argument('<target>', 'the way of deploying').choices([
        'systemd',
        'docker',
        'compose',
        'kubernetes',
      ]),
    )
    .option(...outOption)
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      '\nExit codes: 0 written, or there already; 1 a file that is there differs; 2 a file cannot be written, or the definition names files that cannot be deployed.\n\nExamples:\n  platformctl deploy init systemd\n  platformctl deploy init kubernetes --out manifests',
    )
    .action(async (target: Target, options: DeployOptions) =>
      settle((await import('../deploy/run.ts')).initDeployment(context, target, options)),
    )
  command
    .command('check')
    .summary('tell which files differ from what init would write')
    .description(
      'Compare the files that are there with what init would write now: after a change of the definition or an upgrade of platformctl.',
    )
    .option(...outOption)
    .option('--print <file>', 'print what init would write into this file, to compare or to copy')
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      '\nExit codes: 0 all the same, 1 a file differs or is missing, 2 there are no files to check.\n\nExamples:\n  platformctl deploy check\n  platformctl deploy check --out /etc/systemd/system\n  platformctl deploy check --print deploy/compose.yaml | diff deploy/compose.yaml -',
    )
    .action(async (options: DeployOptions) =>
      settle((await import('../deploy/run.ts')).checkDeployment(context, options)),
    )
}
