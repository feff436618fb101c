import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { parseMailbox } from '../../core/address.ts'
import { writeWhole } from '../../core/daemon-record.ts'
import { codeOf } from '../../core/errors.ts'
import { untilAborted } from '../../core/host.ts'
import { pathOf, type Templates } from '../../core/mail/compile/files.ts'
import { command, type Define } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, failure, listColumns, templateFaultText, wrongUsage } from '../context.ts'
import { feedback } from '../email/feedback.ts'
import { suppressions } from '../email/suppressions.ts'
import { loadEnvironment } from '../environment.ts'
import { addressOf, choice, ENV_FILE, format, port, repeatable, required, value } from '../inputs.ts'
import { compact, labelled } from '../output/text.ts'
import { BASELINE, REPORT_FORMAT } from '../report.ts'

const TEMPLATES = {
  '--templates <folder>': 'a folder of templates of your own (default: those of the platform)',
} as const

const MAIL_FORMATS = ['html', 'text', 'eml'] as const

export const define: Define = ({ platform }) => {
  const names = platform.mails.definitions.map(({ name }) => name)
  const template = (help = 'which mail') => choice(help, names, { kind: 'template' })
  return {
    examples: ['preview', 'lint --strict', 'send-test welcome --to you@example.com --env-file .env'],
    commands: {
      list,
      preview: command({
        summary: 'serve pages that show every mail and course and reload on save',
        description:
          'Serve pages on loopback that show every mail at phone and desktop width, light and dark, with its plain text, headers and source; every course as a timeline for a time zone, a language and a start; and a mail in two languages side by side. They reload when a template is saved.',
        examples: ['', 'welcome --templates ./templates', '--to you@example.com --env-file .env'],
        inputs: {
          '[template]': template('the mail to show first'),
          ...TEMPLATES,
          '--port <port>': value('port of the page; 0 takes a free one', port, 8026),
          '--to <address>': repeatable('an address that the page may send mails to; repeatable'),
          ...ENV_FILE,
        },
        async run(context, { template: name, templates, port, to, envFile }) {
          const { env } = await loadEnvironment(context, envFile)
          const { openSender } = await import('../preview/sender.ts')
          const recipients = to.map((one) => addressOf(one, '--to: ').mailbox.address)
          const { workshop, shown } = await openTemplates(context, templates)
          const { servePreview } = await import('../preview/server.ts')
          const { noticeSamples } = await import('../preview/page.ts')
          try {
            const { courses, language } = context.platform
            const page = await servePreview(workshop, port, openSender(context, env, recipients), {
              courses,
              language,
              zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
              now: context.clock.now,
              notices: noticeSamples(context.platform),
            }).catch((error: unknown) => {
              throw wrongUsage(
                `port ${port} cannot be used (${codeOf(error)}): choose another with --port (0 takes a free one).`,
              )
            })
            context.stdout.write(`${page.url}/#${name === undefined ? '' : `${name}&`}key=${page.key}\n`)
            context.stderr.write(
              `mails: ${shown}. The page reloads when you save one; Ctrl-C ends the preview.\n`,
            )
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
        },
      }),
      render: command({
        summary: 'print one mail as html, text or eml',
        description: 'Print one mail, filled with its sample values, as html, text or eml.',
        examples: ['welcome --format text', 'welcome --format eml > welcome.eml'],
        inputs: {
          '<template>': template(),
          ...TEMPLATES,
          ...format(...MAIL_FORMATS),
          // Its name in 0.1.0.
          '--as <format>': { ...choice('the same as --format', MAIL_FORMATS), hidden: true },
        },
        async run(context, { template: name, templates, format, as = format }) {
          const { workshop } = await openTemplates(context, templates)
          const { templateFault } = await import('../preview/workshop.ts')
          try {
            const message = await workshop.message(name, {})
            if (as !== 'eml') return message[as]
            const { mimeOf } = await import('../../core/mail/transports/mime.ts')
            return mimeOf(message).toString()
          } catch (error) {
            throw failure(`${templateFault(error)}.`)
          } finally {
            workshop.close()
          }
        },
      }),
      lint,
      build,
      types: command({
        summary: 'print the mails and their slots as a declaration file',
        description:
          'Print a TypeScript declaration file of the mails and their slots, which types platform.mail.send.',
        examples: ['> platform-mails.d.ts', '--out src/platform-mails.d.ts'],
        inputs: { '--out <file>': 'write it to this file instead, replacing what an earlier run wrote' },
        run: async (context, { out }) => (await import('../variables.ts')).writeTypes(context, 'mails', out),
      }),
      'send-test': command({
        summary: 'send one mail with sample values through the configured transport',
        description:
          'Send one mail, filled with its sample values, through the transport that the environment configures. A translation has its folder in its name: de/welcome.',
        examples: ['welcome --to you@example.com --env-file .env'],
        inputs: { '<template>': template(), '--to <address>': required('where to'), ...ENV_FILE },
        async run(context, { template: name, to: given, envFile }) {
          const to = addressOf(given, '--to: ').mailbox.address
          const { openSender } = await import('../preview/sender.ts')
          const { env } = await loadEnvironment(context, envFile)
          const mail = (await context.platform.mails.compiled())[name]
          if (mail === undefined) throw new RangeError('the argument was checked')
          const reason = 'interrupted; the server may have it all the same'
          const stopped = untilAborted(context.signal).then(() => ({ sent: false as const, reason }))
          const result = await Promise.race([openSender(context, env).send(mail, name, to), stopped])
          if (result.sent) return `sent to ${to}\n`
          const off = /not configured/.test(result.reason)
          throw new CommandError(
            off ? EXIT.failed : EXIT.remote,
            `not sent: ${result.reason}.${off ? ' Run platformctl env explain mail to see what to set.' : ''}`,
          )
        },
      }),
      feedback,
      suppressions,
    },
  }
}

const list = command({
  summary: 'list every mail with its subject and slots',
  examples: ['', '--format json'],
  document: 'email list',
  async run(context) {
    const { renderMail, withSamples } = await import('../../core/mail/template.ts')
    const mails = Object.entries(await context.platform.mails.compiled()).map(([name, mail]) => ({
      name,
      subject: renderMail(mail, withSamples(mail)).subject,
      slots: mail.slots,
    }))
    const rows = mails.flatMap(({ name, subject, slots }) => [
      [name, subject] as const,
      ['', `slots: ${Object.keys(slots).join(', ')}`] as const,
    ])
    return { json: { mails }, text: labelled(rows, 30, listColumns(context.stdout)) }
  },
})

/** The mails of the platform, with the templates of the named folder if one is named; one without a layout is wrong usage. */
function templatesOf({ platform: { mails }, cwd }: Context, folder: string | undefined): Templates {
  if (folder === undefined) return mails
  const full = path.resolve(cwd, folder)
  if (!existsSync(path.join(full, 'layout.mjml')))
    throw wrongUsage(
      `${folder} is not a folder of templates: it holds no layout.mjml (copy the package’s templates folder to start from).`,
    )
  // It takes the place of the first folder; what it lacks comes from those behind it.
  const [{ language } = {}, ...others] = mails.folders
  return { ...mails, folders: [{ path: full, ...(language && { language }) }, ...others] }
}

async function openTemplates(context: Context, named: string | undefined) {
  const templates = templatesOf(context, named)
  const { openWorkshop } = await import('../preview/workshop.ts')
  const example = parseMailbox(context.platform.contract.find('MAILER_FROM')?.example ?? '')
  const from = example.ok ? example.mailbox : undefined
  const folders = [...templates.folders, ...templates.definitions.flatMap(({ folder }) => folder ?? [])]
  const own = folders.filter(({ shipped }) => !shipped)
  const shown = compact(
    ...new Set(own.map((one) => path.relative(context.cwd, pathOf(one)) || '.')),
    own.length < folders.length && 'those of the package',
  )
  return { workshop: openWorkshop({ ...templates, from }), shown: shown.join(', ') }
}

const lint = command({
  summary: 'check every mail: links, contrast, size, clients, plain text, what spam filters penalize',
  description:
    'Check every mail, filled with its sample values: links against the routes of the platform, contrast in both colour schemes, size, support of the HTML and CSS in the mail clients that matter, the plain-text part, and what spam filters penalize.',
  exits: '0 passed, 1 failed, 2 no folder of templates.',
  examples: [
    '--strict',
    '--templates ./templates --format github',
    'platformctl env explain contrast-low                    what a finding means',
  ],
  inputs: {
    ...TEMPLATES,
    '--strict': 'fail on warnings too',
    '--notices': 'show what is supported with exceptions too',
    ...BASELINE,
    ...REPORT_FORMAT,
  },
  async run(context, values) {
    const templates = templatesOf(context, values.templates)
    const shown = (folder: string, file: string) =>
      path.relative(context.cwd, path.join(folder, file)).replaceAll(path.sep, '/')
    const { lintMails } = await import('../../core/mail/lint/lint.ts')
    const { writeReport } = await import('../report.ts')
    const { PAGES } = await import('../../daemon/routes.ts')
    const report = await lintMails(templates, shown, PAGES, context.platform.language)
    return writeReport(context, 'email lint', report, values)
  },
})

const build = command({
  summary: 'compile the mails of a definition ahead of time, so that starting is faster',
  description:
    'Check and compile the mails and lessons of the platform definition. Programs that start with a fresh build load no compiler.',
  exits: '0 built, 1 a template does not compile, 2 the platform has no mails folder.',
  examples: [''],
  async run(context) {
    const { mails } = context.platform
    if (mails.build === undefined)
      throw wrongUsage(
        "this platform has no mails of its own. Name their folder in the definition: mails: './mails'.",
      )
    const { BUILD_FILE, buildFolder } = await import('../../core/mail/folder-mails.ts')
    const made = await buildFolder(mails).catch((error: unknown) => {
      if (!(error instanceof Error && error.name === 'TemplateError')) throw error
      throw failure(`${templateFaultText(context.cwd, error)} Nothing was written.`)
    })
    const file = path.join(mails.build, BUILD_FILE)
    mkdirSync(path.dirname(file), { recursive: true })
    writeWhole(file, `${JSON.stringify(made)}\n`, 0o666)
    return `${Object.keys(made.mails).length} mails in ${path.relative(context.cwd, file)}\n`
  },
})
