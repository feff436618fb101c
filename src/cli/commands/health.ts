import { Option } from 'commander'
import type { Configure } from '../context.ts'
import type { HealthCommandOptions } from '../health/run.ts'
import { collect, duration, envFileOption, formatOption, serviceOption, wholeNumber } from '../options.ts'

export const configure: Configure = (command, context, settle) => {
  const [, second] = context.platform.services
  const example = second === undefined ? '' : ` ${second.name}=…`
  command
    .description(
      'Ask the running services for their health. With --wait and --expect-build it is the smoke test of a deployment, with --watch a live view.',
    )
    .option('--deep', 'live checks of what the web service depends on')
    .addOption(
      new Option(
        '--url <service=url...>',
        `addresses, as web=https://www.example.com${example}; else those of the env files, else this machine. Another name asks another program at the address of its health: plain ok, health+json, Spring or ASP.NET`,
      )
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(serviceOption(context.platform.contract.services))
    .addOption(envFileOption())
    .option(
      '--token-env <name>',
      'the variable that holds the token for deep checks (default: HEALTH_DEEP_TOKEN)',
    )
    .option('--token-file <file>', 'a file that holds the token')
    .addOption(
      new Option('--timeout <duration>', 'how long one service may take')
        .argParser(duration)
        .default(5000, '5s'),
    )
    .option('--wait <duration>', 'keep asking until all pass, at most this long (60s, 2m)', duration)
    .option('--consecutive <n>', 'how many passes in a row --wait needs (default: 1)', wholeNumber(1, 100))
    .option('--expect-build <stamp>', 'fail unless every service runs this build')
    .option('--watch', 'keep asking and show it live; off a terminal, a line for each change')
    .option('--interval <duration>', 'how often --watch asks (default: 5s)', duration)
    .option('--strict', 'fail on degraded, different builds and a certificate that ends within 14 days too')
    .option('--quiet', 'print nothing; exit code 0 or 1')
    .addOption(formatOption(['text', 'json', 'junit', 'prom']))
    .addHelpText(
      'after',
      `
Exit codes: 0 passed (degraded allowed), 1 failing, 2 wrong usage, 3 not reached or refused.
With --quiet, a service that is not reached is exit code 1 too, as a container's HEALTHCHECK expects.

Examples:
  platformctl health
  platformctl health --deep --url web=https://www.example.com --token-file /run/secrets/health
  platformctl health --wait 60s --consecutive 3 --expect-build "$BUILD_STAMP" --env-file .env.production
  platformctl health --watch --interval 2s
  platformctl health --format prom > /var/lib/node_exporter/platformctl.prom
  platformctl health --service web --quiet                      as a container's HEALTHCHECK
  platformctl health explain tls_expired`,
    )
    .action(async (options: HealthCommandOptions) => {
      const { runHealth } = await import('../health/run.ts')
      settle(await runHealth(context, options))
    })
  command
    .command('explain')
    .summary('explain a cause code and how to fix it')
    .description('Explain a cause code and how to fix it. Without a code, all are explained.')
    .argument('[code]', 'a cause code, such as tls_expired')
    .addHelpText(
      'after',
      '\nExamples:\n  platformctl health explain\n  platformctl health explain dns_not_found',
    )
    .action(async (code: string | undefined) => {
      const { explainCause } = await import('../health/run.ts')
      settle(explainCause(context, code))
    })
}
