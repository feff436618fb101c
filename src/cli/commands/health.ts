import { command, type Define } from '../command.ts'
import { duration, ENV_FILE, format, repeatable, serviceInput, TOKEN, value, wholeNumber } from '../inputs.ts'

export const define: Define = ({ platform }) => {
  const [, second] = platform.services
  const example = second === undefined ? '' : ` ${second.name}=…`
  return command({
    description:
      'Ask the running services for their health. With --wait and --expect-build it is the smoke test of a deployment, with --watch a live view.',
    exits: `0 passed (degraded allowed), 1 failing, 2 wrong usage, 3 not reached or refused.
With --quiet, a service that is not reached is exit code 1 too, as a container's HEALTHCHECK expects.`,
    examples: [
      '',
      '--deep --url web=https://www.example.com --token-file /run/secrets/health',
      '--wait 60s --consecutive 3 --expect-build "$BUILD_STAMP" --env-file .env.production',
      '--watch --interval 2s',
      'platformctl health --format prom > /var/lib/node_exporter/platformctl.prom',
      "--service web --quiet                      as a container's HEALTHCHECK",
      'explain tls_expired',
    ],
    inputs: {
      '--deep': 'live checks of what the web service depends on',
      '--url <service=url...>': repeatable(
        `addresses, as web=https://www.example.com${example}; else those of the env files, else this machine. Another name asks another program at the address of its health: plain ok, health+json, Spring or ASP.NET`,
      ),
      ...serviceInput(platform.contract.services),
      ...ENV_FILE,
      ...TOKEN,
      '--timeout <duration>': value('how long one service may take', duration, 5000, '5s'),
      '--wait <duration>': value('keep asking until all pass, at most this long (60s, 2m)', duration),
      '--consecutive <n>': value('how many passes in a row --wait needs (default: 1)', wholeNumber(1, 100)),
      '--expect-build <stamp>': 'fail unless every service runs this build',
      '--watch': 'keep asking and show it live; off a terminal, a line for each change',
      '--interval <duration>': value('how often --watch asks (default: 5s)', duration),
      '--strict': 'fail on degraded, different builds and a certificate that ends within 14 days too',
      '--quiet': 'print nothing; exit code 0 or 1',
      ...format('text', 'json', 'junit', 'prom'),
    },
    run: async (context, values) => (await import('../health/run.ts')).runHealth(context, values),
    commands: {
      explain: command({
        summary: 'explain a cause code and how to fix it',
        description: 'Explain a cause code and how to fix it. Without a code, all are explained.',
        examples: ['', 'dns_not_found'],
        inputs: { '[code]': 'a cause code, such as tls_expired' },
        run: async (context, { code }) => (await import('../health/run.ts')).explainCause(context, code),
      }),
    },
  })
}
