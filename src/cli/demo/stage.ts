import { type Service, type ServiceDefinition, WEB } from '../../core/service.ts'
import { type Context, loadPaint, openSpinner, programName, shown, terminalColumns } from '../context.ts'
import { beside } from '../output/text.ts'

/** Shows how far the demo is: finished steps stay as lines, and `told` gets each; the current one is a spinner on a terminal. */
export async function openStage(context: Context, told: (text: string) => void) {
  const paint = await loadPaint(context.colour.stderr)
  const spinner = await openSpinner(context)
  const line = (text: string) => {
    const spinning = spinner.isSpinning
    if (spinning) spinner.stop()
    context.stderr.write(`${text}\n`)
    if (spinning) spinner.start()
  }
  const columns = terminalColumns(context.stderr)
  const padded = (texts: readonly string[]) => Math.max(...texts.map(({ length }) => length)) + 2

  return {
    wait: (text: string) => void spinner.start(shown(text, true)),
    done(text: string) {
      line(beside(`${paint.green('✔')} `, text, columns))
      told(text)
    },
    note: (text: string) => line(beside('  ', paint.dim(text), columns)),
    open(pages: readonly (readonly [name: string, url: string, what: string])[]) {
      const [names, urls] = [padded(pages.map(([name]) => name)), padded(pages.map(([, url]) => url))]
      line('')
      for (const [name, url, what] of pages) {
        const lead = `  ${paint.bold(name.padEnd(names))}${paint.cyan(url.padEnd(urls))}`
        line(beside(lead, paint.dim(what), columns))
      }
      line('')
    },
    /** Shows the seconds left, and after them `more`; rejects with the signal's reason on Ctrl-C. */
    async countDown(text: string, ms: number, more = 0) {
      const end = context.clock.monotonic() + ms
      for (let left = ms; left > 0; left = end - context.clock.monotonic()) {
        spinner.start(shown(`${text} ${paint.dim(`(${Math.ceil((left + more) / 1000)} s)`)}`, true))
        await context.clock.sleep(Math.min(left, 1000), context.signal)
      }
    },
    finale(text: string, commands: readonly (readonly [command: string, what: string])[], inboxUrl: string) {
      spinner.stop()
      line(beside(`${paint.green('✔')} `, paint.bold(text), columns))
      told(text)
      line('')
      line(`  Look at them: ${paint.cyan(inboxUrl)}`)
      line('  Then try, in another terminal:\n')
      // The command stays on a line of its own, to be copied whole.
      for (const [command, what] of commands)
        line(`${beside('    ', paint.dim(what), columns)}\n    ${paint.bold(command)}\n`)
    },
    clear: () => void spinner.stop(),
    end: (text: string) => line(paint.dim(text)),
  }
}

const PREVIEW_PORT = 8026

/** Commands to try after the demo, each with what it does. They run as printed, while the demo keeps its ports. */
export function nextSteps(input: {
  readonly services: readonly ServiceDefinition[]
  readonly urls: Readonly<Partial<Record<Service, string>>>
  readonly env: Context['env']
  /** Free ports for a daemon and a preview beside this demo. */
  readonly free: { readonly services: Readonly<Record<Service, number>>; readonly preview: number }
}): readonly (readonly [command: string, what: string])[] {
  const { services, urls, env, free } = input
  const name = programName(env)
  // `health` asks services that are not named on their usual port, so only the others need an address.
  const addresses = services.flatMap((service) => {
    const usual = `http://127.0.0.1:${service.port}`
    const url = urls[service.name] ?? usual
    return service.name === WEB || url !== usual ? [`${service.name}=${url}`] : []
  })
  const preview = free.preview === PREVIEW_PORT ? '' : ` --port ${free.preview}`
  const ports = Object.entries(free.services).map(([service, port]) => `--${service}-port ${port}`)
  const daemon = `daemon --env-file platform.env ${ports.join(' ')}`
  return [
    [`${name} health --url ${addresses.join(' ')}`, 'Check the running services:'],
    [`${name} email preview${preview}`, 'Look at every mail, edit the templates, see them reload:'],
    [`${name} env example > platform.env`, 'Write an environment file of your own:'],
    [`${name} preflight --env-file platform.env`, 'Check it before anything serves requests:'],
    [`${name} ${daemon}`, 'Run the services with it, beside the demo:'],
  ]
}
