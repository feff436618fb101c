import { checkEnvironment } from '../check-environment.ts'
import { command, type Define } from '../command.ts'
import { wrongUsage } from '../context.ts'
import { duration, ENV_FILE, READERS, repeatable, serviceInput, TOKEN, value } from '../inputs.ts'
import { REPORT_INPUTS } from '../report.ts'

export const define: Define = ({ platform: { contract } }) =>
  command({
    description:
      'Check the environment of all services, as each does when it starts. Half-configured groups and broken rules are errors, and, of your own definition, missing required variables and malformed values. All else is a warning.',
    exits:
      '0 passed, 1 failed, 2 unreadable input, 3 the settings passed, but a service was not reached or refused a key.',
    examples: [
      "platformctl preflight                                   this process's environment",
      '--env-file .env --strict          with a file, failing on warnings',
      '--env-file .env --deep            and ask everything that is configured',
      '--env-file .env --deep --send-test   and send a test alert on each channel',
      '--env-file .env --against https://www.example.com   and show what a restart would change there',
      '--env-file .env --format github   annotations in a workflow',
      '--env-file .env --format json > known.json',
      '--env-file .env --strict --baseline known.json',
    ],
    inputs: {
      ...ENV_FILE,
      ...serviceInput(contract.services),
      ...READERS,
      '--deep':
        'live checks too, of what is configured: names, certificates, keys, mail records, migrations, probes',
      '--timeout <duration>': value(
        'with --deep: how long all live checks may take (10s, 1m); with --against: how long each service may',
        duration,
        15_000,
        '15s',
      ),
      '--dkim-selector <name>': repeatable('with --deep: a DKIM selector of the sender’s domain; repeatable'),
      '--data <folder>': 'with --deep: the data folder, when STORE_URL is not set (default: .platformctl)',
      '--send-test': 'with --deep: also send a test alert on each channel, as alert test does',
      '--against <service=url...>': repeatable(
        'running services, as web=https://www.example.com, to show what these files would change there; replicas are separated by commas',
      ),
      ...TOKEN,
      ...REPORT_INPUTS,
    },
    run: (context, values) => {
      const { service = contract.services, envFile, timeout, against, data } = values
      const { deep, sendTest = false, dkimSelector: dkimSelectors, tokenEnv, tokenFile } = values
      if (sendTest && !deep) throw wrongUsage('--send-test is a live check, so it needs --deep.')
      return checkEnvironment(context, {
        ...values,
        name: 'preflight',
        services: service,
        files: envFile,
        withProcess: true,
        against:
          against.length > 0
            ? { url: against, option: '--against', tokenEnv, tokenFile, timeout }
            : undefined,
        deep: deep && { timeoutMs: timeout, dkimSelectors, sendTest, data },
      })
    },
  })
