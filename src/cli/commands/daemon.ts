import { SERVICES, type Service } from '../../core/service.ts'
import type { Context } from '../context.ts'
import { dataFolder } from '../data-folder.ts'
import { CommandError, EXIT } from '../exit.ts'
import { envFileOption, port, serviceOption } from '../options.ts'
import { findingText } from '../output/findings-text.ts'
import { loadPaint } from '../paint.ts'
import type { Configure } from '../program.ts'

interface Options {
  readonly service?: readonly Service[]
  readonly host: string
  readonly webPort: number
  readonly apiPort: number
  readonly agentPort: number
  readonly data?: string
  readonly envFile: readonly string[]
  readonly schedule: boolean
}

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Run the services, the store and the hourly schedule in one process. The environment is validated before anything listens; logs are JSON lines on standard output, one of which says where each service listens.',
    )
    .addOption(serviceOption())
    .option('--host <host>', 'the address to listen on', '127.0.0.1')
    .option('--web-port <port>', 'port of the web service; 0 takes a free one', port, 3000)
    .option('--api-port <port>', 'port of the API; 0 takes a free one', port, 8000)
    .option('--agent-port <port>', 'port of the agent; 0 takes a free one', port, 8100)
    .option(
      '--data <folder>',
      'where the SQLite file lives when STORE_URL is not set (default: .platformctl)',
    )
    .addOption(envFileOption())
    .option('--no-schedule', 'do not dispatch every hour; something else calls the dispatch endpoint')
    .addHelpText(
      'after',
      `
Exit codes: 0 stopped cleanly, 1 half-configured environment, 2 port taken or store not writable.

Examples:
  platformctl daemon --env-file .env
  platformctl daemon --service web --web-port 8080 --host 0.0.0.0
  platformctl daemon | npx pino-pretty --messageKey message`,
    )
    .action(async (options: Options) => {
      const { loadEnvironment } = await import('../environment.ts')
      const { createLog } = await import('../../daemon/log.ts')
      const { startDaemon } = await import('../../daemon/start.ts')
      const { readSettings } = await import('../../core/env/read-settings.ts')
      const { env } = await loadEnvironment(context, options.envFile)
      const { logLevel, buildStamp } = readSettings(env).site
      const daemon = await startDaemon({
        env,
        services: options.service ?? SERVICES,
        host: options.host,
        ports: { web: options.webPort, api: options.apiPort, agent: options.agentPort },
        dataFolder: dataFolder(context, options.data),
        schedule: options.schedule,
        clock: context.clock,
        random: context.random,
        log: createLog({ write: (line) => context.stdout.write(line), level: logLevel, build: buildStamp }),
      }).catch((error: unknown) => explain(error, context))
      await new Promise<void>((resolve) => {
        if (context.signal.aborted) resolve()
        else context.signal.addEventListener('abort', () => resolve(), { once: true })
      })
      await daemon.close()
      settle(EXIT.passed)
    })
}

async function explain(error: unknown, context: Context): Promise<never> {
  const { InvalidEnvironmentError, ListenError } = await import('../../daemon/start.ts')
  if (error instanceof InvalidEnvironmentError) {
    const paint = await loadPaint(context.colour.stderr)
    for (const finding of error.findings)
      context.stderr.write(`${findingText(finding, paint, context.stderr.columns ?? 100)}\n\n`)
    throw new CommandError(
      EXIT.failed,
      'the environment is half-configured, so nothing was started; platformctl preflight shows the whole report.',
    )
  }
  if (error instanceof ListenError) {
    const code = error.cause instanceof Error && 'code' in error.cause ? String(error.cause.code) : ''
    const flag = `--${error.service}-port`
    const why =
      code === 'EADDRINUSE'
        ? `is in use: stop what listens there, or choose another with ${flag} (0 takes a free one)`
        : code === 'EACCES'
          ? `needs more rights: choose one above 1023 with ${flag}`
          : `cannot be taken on this address (${code}): check --host`
    throw new CommandError(EXIT.usage, `port ${error.port} of ${error.service} ${why}.`)
  }
  if (error instanceof Error && error.name === 'StoreOpenError')
    throw new CommandError(EXIT.usage, error.message)
  throw error
}
