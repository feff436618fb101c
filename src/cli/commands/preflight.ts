import { checkEnvironment } from '../check-environment.ts'
import { command, type Define } from '../command.ts'
import { duration, ENV_FILE, READERS, repeatable, serviceInput, value } from '../inputs.ts'
import { REPORT_INPUTS } from '../report.ts'

export const define: Define = ({ platform: { contract } }) =>
  command({
    description:
      'Run the validators of all three services, as they run at boot: half-configuration is an error, all else at most a warning.',
    exits:
      '0 passed, 1 failed, 2 unreadable input, 3 passed here, but something outside was not reached or refused a key.',
    examples: [
      "platformctl preflight                                   this process's environment",
      '--env-file .env --strict          with a file, failing on warnings',
      '--env-file .env --deep            and ask everything that is configured',
      '--env-file .env --format github   annotations in a workflow',
      '--env-file .env --format json > known.json',
      '--env-file .env --strict --baseline known.json',
    ],
    inputs: {
      ...ENV_FILE,
      ...serviceInput(contract.services),
      ...READERS,
      '--deep': 'live checks too, of what is configured: names, certificates, keys, mail records, migrations',
      '--timeout <duration>': value(
        'with --deep: how long all live checks may take (10s, 1m)',
        duration,
        15_000,
        '15s',
      ),
      '--dkim-selector <name>': repeatable('with --deep: a DKIM selector of the sender’s domain; repeatable'),
      ...REPORT_INPUTS,
    },
    run: (context, { service = contract.services, envFile, deep, timeout, dkimSelector, ...values }) =>
      checkEnvironment(context, {
        ...values,
        name: 'preflight',
        services: service,
        files: envFile,
        withProcess: true,
        deep: deep && { timeoutMs: timeout, dkimSelectors: dkimSelector },
      }),
  })
