import { Option } from 'commander'
import { codeOf } from '../../core/error-code.ts'
import type { MailSet } from '../../core/mail/definition.ts'
import type { CompiledMail } from '../../core/mail/template.ts'
import { untilAborted } from '../../core/wait.ts'
import { type Configure, type Context, listColumns } from '../context.ts'
import { configureFeedback } from '../email/feedback.ts'
import { configureSuppressions } from '../email/suppressions.ts'
import { CommandError, EXIT, type ExitCode, templateFaultText, wrongUsage } from '../exit.ts'
import {
  baselineOption,
  choiceArgument,
  choiceOption,
  collect,
  envFileOption,
  formatOption,
  port,
  subcommand,
} from '../options.ts'
import { printJson, printText } from '../print.ts'
import { REPORT_FORMATS, type ReportOptions } from '../report.ts'

const templates = () =>
  new Option('--templates <folder>', 'a folder of templates of your own (default: those of the platform)')

export const configure: Configure = (command, context, settle) => {
  const choices = context.platform.mails.definitions.map(({ name }) => name)
  const template = (name = '<template>', description = 'which mail') =>
    choiceArgument(name, description, { kind: 'template', choices })
  command.description(
    'Look at the mails, check them, print one, send one to yourself, and act on what comes back.',
  )
  command.addHelpText(
    'after',
    '\nExamples:\n  platformctl email preview\n  platformctl email lint --strict\n  platformctl email send-test welcome --to you@example.com --env-file .env',
  )
  subcommand(command, {
    name: 'list',
    summary: 'list every mail with its subject and slots',
    examples: ['', ' --format json'],
  })
    .addOption(formatOption(['text', 'json']))
    .action(async (options: { format: 'text' | 'json' }) => settle(await list(context, options.format)))
  subcommand(command, {
    name: 'preview',
    summary: 'serve pages that show every mail and course and reload on save',
    description:
      'Serve pages on loopback that show every mail at phone and desktop width, light and dark, with its plain text, headers and source; every course as a timeline for a time zone, a language and a start; and a mail in two languages side by side. They reload when a template is saved.',
    examples: ['', ' welcome --templates ./templates', ' --to you@example.com --env-file .env'],
  })
    .addArgument(template('[template]', 'the mail to show first'))
    .addOption(templates())
    .option('--port <port>', 'port of the page; 0 takes a free one', port, 8026)
    .addOption(
      new Option('--to <address>', 'an address that the page may send mails to; repeatable')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(envFileOption())
    .action(async (name: string | undefined, options: PreviewOptions) =>
      settle(await preview(context, name, options)),
    )
  subcommand(command, {
    name: 'render',
    summary: 'print one mail as html, text or eml',
    description: 'Print one mail, filled with its sample values, as html, text or eml.',
    examples: [' welcome --format text', ' welcome --format eml > welcome.eml'],
  })
    .addArgument(template())
    .addOption(templates())
    .addOption(formatOption(MAIL_FORMATS))
    // Its name in 0.1.0.
    .addOption(
      choiceOption('--as <format>', 'the same as --format', {
        kind: 'format',
        choices: MAIL_FORMATS,
      }).hideHelp(),
    )
    .action(async (name: string, options: RenderOptions) => settle(await render(context, name, options)))
  command
    .command('lint')
    .summary('check every mail: links, contrast, size, clients, plain text, what spam filters penalize')
    .description(
      'Check every mail, filled with its sample values: links against the routes of the platform, contrast in both colour schemes, size, support of the HTML and CSS in the mail clients that matter, the plain-text part, and what spam filters penalize.',
    )
    .addOption(templates())
    .option('--strict', 'fail on warnings too')
    .option('--notices', 'show what is supported with exceptions too')
    .addOption(baselineOption())
    .addOption(formatOption(REPORT_FORMATS))
    .addHelpText(
      'after',
      `
Exit codes: 0 passed, 1 failed, 2 no folder of templates.

Examples:
  platformctl email lint --strict
  platformctl email lint --templates ./templates --format github
  platformctl env explain contrast-low                    what a finding means`,
    )
    .action(async (options: ReportOptions & { templates?: string }) => settle(await lint(context, options)))
  subcommand(command, {
    name: 'build',
    summary: 'compile the mails of a definition ahead of time, so that starting is faster',
    description:
      'Check and compile the mails and lessons of the platform definition. Programs that start with a fresh build load no compiler.',
    exits: '0 built, 1 a template does not compile, 2 the platform has no mails folder.',
    examples: [''],
  }).action(async () => settle(await build(context)))
  subcommand(command, {
    name: 'types',
    summary: 'print the mails and their slots as a declaration file',
    description:
      'Print a TypeScript declaration file of the mails and their slots, which types platform.mail.send.',
    examples: [' > platform-mails.d.ts', ' --out src/platform-mails.d.ts'],
  })
    .option('--out <file>', 'write it to this file instead, replacing what an earlier run wrote')
    .action(async ({ out }: { readonly out?: string }) => {
      const { writeTypes } = await import('../variables.ts')
      settle(await writeTypes(context, 'mails', out))
    })
  subcommand(command, {
    name: 'send-test',
    summary: 'send one mail with sample values through the configured transport',
    description:
      'Send one mail, filled with its sample values, through the transport that the environment configures.',
    examples: [' welcome --to you@example.com --env-file .env'],
  })
    .addArgument(template())
    .requiredOption('--to <address>', 'where to')
    .addOption(envFileOption())
    .action(async (name: string, options: { to: string; envFile: readonly string[] }) =>
      settle(await sendTest(context, name, options)),
    )
  configureFeedback(command, context, settle)
  configureSuppressions(command, context, settle)
}

async function list(context: Context, format: 'text' | 'json'): Promise<ExitCode> {
  const { renderMail } = await import('../../core/mail/render.ts')
  const mails = await context.platform.mails.compiled()
  const rows = Object.entries(mails).map(([name, mail]) => {
    const { slots } = mail
    return { name, subject: renderMail(mail, samplesOf(mail)).subject, slots }
  })
  if (format === 'json') return printJson(context, 'email list', { mails: rows })
  const { beside } = await import('../output/text.ts')
  const columns = listColumns(context.stdout)
  const line = (lead: string, text: string) => `${beside(lead.padEnd(28), text, columns)}\n`
  const lines = rows.map(
    ({ name, subject, slots }) => line(name, subject) + line('', `slots: ${Object.keys(slots).join(', ')}`),
  )
  return printText(context, lines.join(''))
}

function samplesOf({ slots }: CompiledMail): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(slots).map(([slot, { sample }]) => [slot, sample]))
}

type Templates = Pick<MailSet, 'definitions' | 'folders' | 'brand'>

/** The mails of the platform, with the templates of the named folder if one is named; one without a layout is wrong usage. */
async function templatesOf(context: Context, folder: string | undefined): Promise<Templates> {
  const { mails } = context.platform
  if (folder === undefined) return mails
  const { existsSync } = await import('node:fs')
  const path = await import('node:path')
  const full = path.resolve(context.cwd, folder)
  if (!existsSync(path.join(full, 'layout.mjml'))) {
    throw wrongUsage(
      `${folder} is not a folder of templates: it holds no layout.mjml (copy the package’s templates folder to start from).`,
    )
  }
  // A definition's folder holds what differs from its preset; the default platform's holds everything.
  const others = mails.build === undefined ? [] : mails.folders.filter(({ shipped }) => shipped)
  const language = mails.folders[0]?.language
  return { ...mails, folders: [{ path: full, ...(language && { language }) }, ...others] }
}

async function openTemplates(context: Context, named: string | undefined) {
  const templates = await templatesOf(context, named)
  const { openWorkshop } = await import('../preview/workshop.ts')
  const { pathOf } = await import('../../core/mail/mail-path.ts')
  const { parseMailbox } = await import('../../core/address.ts')
  const example = parseMailbox(context.platform.contract.find('MAILER_FROM')?.example ?? '')
  const from = example.ok ? example.mailbox : undefined
  const path = await import('node:path')
  const folders = [...templates.folders, ...templates.definitions.flatMap(({ folder }) => folder ?? [])]
  const own = folders
    .filter(({ shipped }) => !shipped)
    .map((one) => path.relative(context.cwd, pathOf(one)) || '.')
  const shown = [...new Set(own), ...(folders.some(({ shipped }) => shipped) ? ['those of the package'] : [])]
  return { workshop: openWorkshop({ ...templates, from }), shown: shown.join(', ') }
}

interface PreviewOptions {
  readonly templates?: string
  readonly port: number
  readonly to: readonly string[]
  readonly envFile: readonly string[]
}

async function preview(
  context: Context,
  name: string | undefined,
  options: PreviewOptions,
): Promise<ExitCode> {
  const { loadEnvironment } = await import('../environment.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  const { openSender } = await import('../preview/sender.ts')
  const recipients = await Promise.all(options.to.map(recipientOf))
  const path = await import('node:path')
  const { workshop, shown } = await openTemplates(context, options.templates)
  const { servePreview } = await import('../preview/server.ts')
  try {
    const { courses, language } = context.platform
    const page = await servePreview(workshop, options.port, openSender(context, env, recipients), {
      courses,
      language,
      zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      now: context.clock.now,
    }).catch((error: unknown) => {
      const code = codeOf(error)
      throw wrongUsage(
        `port ${options.port} cannot be used (${code}): choose another with --port (0 takes a free one).`,
      )
    })
    context.stdout.write(`${page.url}/#${name === undefined ? '' : `${name}&`}key=${page.key}\n`)
    context.stderr.write(`mails: ${shown}. The page reloads when you save one; Ctrl-C ends the preview.\n`)
    workshop.onNew((file) => {
      const name = path.relative(context.cwd, file)
      context.stderr.write(`${name} is new: end the preview and start it again to see it.\n`)
    })
    await untilAborted(context.signal)
    await page.close()
    return EXIT.passed
  } finally {
    workshop.close()
  }
}

const MAIL_FORMATS = ['html', 'text', 'eml'] as const
type MailFormat = (typeof MAIL_FORMATS)[number]

interface RenderOptions {
  readonly templates?: string
  readonly format: MailFormat
  readonly as?: MailFormat
}

async function render(
  context: Context,
  name: string,
  { templates, format, as = format }: RenderOptions,
): Promise<ExitCode> {
  const { workshop } = await openTemplates(context, templates)
  const { templateFault } = await import('../preview/workshop.ts')
  try {
    const message = await workshop.message(name, {})
    if (as === 'eml')
      context.stdout.write((await import('../../core/mail/mime/mime.ts')).mimeOf(message).toString())
    else context.stdout.write(message[as])
    return EXIT.passed
  } catch (error) {
    throw new CommandError(EXIT.failed, `${templateFault(error)}.`, { cause: error })
  } finally {
    workshop.close()
  }
}

async function lint(
  context: Context,
  options: ReportOptions & { readonly templates?: string },
): Promise<ExitCode> {
  const path = await import('node:path')
  const templates = await templatesOf(context, options.templates)
  const shown = (folder: string, file: string) =>
    path.relative(context.cwd, path.join(folder, file)).replaceAll(path.sep, '/')
  const { lintMails } = await import('../../core/mail/lint/lint.ts')
  const { PAGES } = await import('../../daemon/routes.ts')
  const { writeReport } = await import('../report.ts')
  return writeReport(
    context,
    'email lint',
    await lintMails(templates, shown, PAGES, context.platform.language),
    options,
  )
}

async function build(context: Context): Promise<ExitCode> {
  const { mails } = context.platform
  if (mails.build === undefined)
    throw wrongUsage(
      "this platform has no mails of its own. Name their folder in the definition: mails: './mails'.",
    )
  const { mkdir, rename, writeFile } = await import('node:fs/promises')
  const path = await import('node:path')
  const { BUILD_FILE, buildFolder } = await import('../../core/mail/folder-mails.ts')
  const made = await buildFolder(mails).catch((error: unknown) => {
    if (error instanceof Error && error.name === 'TemplateError')
      throw new CommandError(EXIT.failed, `${templateFaultText(context.cwd, error)} Nothing was written.`, {
        cause: error,
      })
    throw error
  })
  const file = path.join(mails.build, BUILD_FILE)
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(`${file}.new`, `${JSON.stringify(made)}\n`)
  await rename(`${file}.new`, file)
  return printText(
    context,
    `${Object.keys(made.mails).length} mails in ${path.relative(context.cwd, file)}\n`,
  )
}

async function sendTest(
  context: Context,
  name: string,
  options: { to: string; envFile: readonly string[] },
): Promise<ExitCode> {
  const { loadEnvironment } = await import('../environment.ts')
  const { openSender } = await import('../preview/sender.ts')
  const to = await recipientOf(options.to)
  const { env } = await loadEnvironment(context, options.envFile)
  const mail = (await context.platform.mails.compiled())[name]
  if (mail === undefined) throw new RangeError('the argument was checked')
  const result = await openSender(context, env).send({ mail, name, slots: {}, to })
  if (!result.sent) {
    const off = /not configured/.test(result.reason)
    throw new CommandError(
      off ? EXIT.failed : EXIT.remote,
      `not sent: ${result.reason}.${off ? ' Run platformctl env explain mail to see what to set.' : ''}`,
    )
  }
  return printText(context, `sent to ${to}\n`)
}

/** The address of a `--to`, as it is sent to; anything else is wrong usage. */
async function recipientOf(text: string): Promise<string> {
  const { parseAddress } = await import('../../core/address.ts')
  const parsed = parseAddress(text)
  if (!parsed.ok) throw wrongUsage(`--to: ${parsed.reason}.`)
  return parsed.mailbox.address
}
