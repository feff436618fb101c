import { execFile, execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { readSettings } from '../../src/core/env/settings.ts'
import { createBounceAddresses } from '../../src/core/mail/feedback/bounce-address.ts'
import { openMailer } from '../../src/core/mail/open.ts'
import { renderMail } from '../../src/core/mail/template.ts'
import { openStore } from '../../src/core/store/open.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { testContext } from '../support/context.ts'
import { freePort } from '../support/free-port.ts'
import { compiledMails, TEMPLATES } from '../support/learning.ts'
import { mailerTo, WELCOME } from '../support/mailers.ts'
import { subscribe } from '../support/subscribers.ts'

const run = promisify(execFile)
const POSTFIX = '/usr/sbin/postfix'
const project = fileURLToPath(new URL('../..', import.meta.url))
const reader = fileURLToPath(new URL('postfix.py', import.meta.url))

function missing(): string | undefined {
  if (!existsSync(POSTFIX)) return 'no Postfix; install the package postfix'
  if (process.getuid?.() !== 0) return 'Postfix starts as root only'
  try {
    execFileSync('python3', ['--version'])
    return undefined
  } catch {
    return 'no python3 to read the mailbox with'
  }
}

/** An alias runs as the user nobody, who must be able to read the built command. */
function canNobodyRead(file: string): boolean {
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) {
      process.stderr.write(`skipped: the alias, because the user nobody cannot read ${folder}\n`)
      return false
    }
    if (folder === path.dirname(folder)) return true
  }
}

const why = missing()
if (why !== undefined) process.stderr.write(`skipped: ${why}\n`)

/** A message as Python's email package reads it. */
interface Read {
  readonly headers: readonly (readonly [string, string])[]
  readonly type: string
  readonly types: readonly string[]
  readonly text: string
  readonly html: string
  readonly defects: readonly string[]
}

const FROM = { name: 'Grüße vom Kurs', address: 'course@example.com' }
const DATE = new Date('2026-11-21T04:00:00Z')

describe.runIf(why === undefined)('through Debian’s Postfix', () => {
  let folder: string
  let port: number
  let knowsNobody: Awaited<ReturnType<typeof serverThatKnowsNobody>>
  const control = (word: string) => run(POSTFIX, ['-c', `${folder}/etc`, word])

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'platformctl-postfix-'))
    port = await freePort()
    const { stdout } = await run('id', ['-u', 'postfix'])
    const uid = Number(stdout)
    knowsNobody = await serverThatKnowsNobody()
    // A Postfix of its own: configuration, queue and mailbox in one folder, on loopback, for one domain.
    for (const name of ['etc', 'queue', 'data', 'mail']) await mkdir(`${folder}/${name}`)
    await chmod(folder, 0o755)
    for (const name of ['data', 'mail']) await chown(`${folder}/${name}`, uid, uid)
    await writeFile(`${folder}/etc/main.cf`, settings(folder, uid, knowsNobody.port))
    await writeFile(`${folder}/etc/master.cf`, services(port))
    await writeFile(`${folder}/etc/aliases`, await documentedAlias(folder))
    await run('/usr/sbin/postalias', ['-c', `${folder}/etc`, `hash:${folder}/etc/aliases`])
    await control('start')
  })
  afterAll(async () => {
    if (folder === undefined) return
    await control('stop').catch(() => {})
    await knowsNobody.close()
    await rm(folder, { recursive: true, force: true })
  })

  const lesson = {
    lessonUrl: 'https://www.example.com/lessons/1',
    unsubscribeUrl: 'https://www.example.com/u?s=1&t=2',
  }
  const mailBy = (bounceAddress: string) => ({
    MAILER_API_KEY: 'key-of-the-mailer',
    MAILER_FROM: 'course@example.com',
    MAILER_SMTP_URL: `smtp://127.0.0.1:${port}`,
    MAILER_BOUNCE_ADDRESS: bounceAddress,
  })
  /** Sends a lesson, whose bounce comes to an address of ours. */
  async function sendLesson(to: string, bounceAddress: string, addressKey: string): Promise<void> {
    const mailer = openMailer({
      compiled: compiledMails,
      mail: readSettings(learning, mailBy(bounceAddress)).mail,
      bounceAddresses: async () => createBounceAddresses(bounceAddress, addressKey),
    })
    await settled(() => mailer.verify())
    const outcome = await mailer.send({
      template: 'course-day-1',
      slots: lesson,
      to: { name: undefined, address: to },
      about: 'course.id-ada.1.1',
      date: DATE,
      unsubscribeUrl: lesson.unsubscribeUrl,
    })
    expect(outcome).toMatchObject({ kind: 'sent' })
    await mailer.close()
  }
  const ownMailer = () =>
    mailerTo(`smtp://127.0.0.1:${port}`, {
      from: FROM,
      replyTo: { name: undefined, address: 'help@example.com' },
    })

  test('all fourteen mails arrive, and another MIME parser reads in them what was sent', async () => {
    const mailer = ownMailer()
    await settled(() => mailer.verify())
    const mails = await compiledMails()
    const sent = new Map<string, { subject: string; html: string; text: string; course: boolean }>()
    for (const name of TEMPLATES) {
      const slots = Object.fromEntries(
        Object.entries(mails[name].slots).map(([slot, { type, sample }]) => [
          slot,
          type === 'text' ? `Ünïcode & <b>“${slot}”</b> 日本語 🙂` : sample,
        ]),
      )
      const course = name.startsWith('course-day-')
      const outcome = await mailer.send({
        template: name,
        slots,
        to: { name: 'Ada, Gräfin von "Lovelace"', address: 'ada@example.com' },
        about: `record.${name}`,
        date: DATE,
        ...(course ? { unsubscribeUrl: slots.unsubscribeUrl ?? '' } : {}),
      })
      expect(outcome, name).toMatchObject({ kind: 'sent' })
      if (outcome.kind === 'sent') sent.set(`<${outcome.id}>`, { ...renderMail(mails[name], slots), course })
    }

    const inbox = `${folder}/mail/inbox`
    await settled(async () => {
      const arrived = await readdir(`${inbox}/new`)
      if (arrived.length < TEMPLATES.length) throw new Error(`only ${arrived.length} arrived`)
    })
    const { stdout } = await run('python3', [reader, inbox], { maxBuffer: 16 * 1024 * 1024 })
    const read = JSON.parse(stdout) as Read[]
    expect(read).toHaveLength(TEMPLATES.length)
    for (const { headers, type, types, text, html, defects } of read) {
      const header = (name: string) =>
        headers.filter(([one]) => one.toLowerCase() === name).map(([, value]) => value)
      const expected = sent.get(header('message-id')[0] ?? '')
      if (expected === undefined) throw new Error(`an unknown message: ${header('message-id')[0]}`)
      sent.delete(header('message-id')[0] ?? '')
      expect(defects).toEqual([])
      expect(type).toBe('multipart/alternative')
      expect(types).toEqual(['text/plain', 'text/html'])
      expect(header('subject')).toEqual([expected.subject])
      expect(header('from')).toEqual(['Grüße vom Kurs <course@example.com>'])
      expect(header('to')).toEqual(['"Ada, Gräfin von \\"Lovelace\\"" <ada@example.com>'])
      expect(header('reply-to')).toEqual(['help@example.com'])
      expect(header('date')).toEqual(['Sat, 21 Nov 2026 04:00:00 +0000'])
      expect(header('list-unsubscribe-post')).toEqual(expected.course ? ['List-Unsubscribe=One-Click'] : [])
      expect(header('delivered-to')).toEqual(['ada@example.com'])
      expect(text).toBe(expected.text)
      expect(html).toBe(expected.html)
    }
    expect([...sent]).toEqual([])
  })

  test('a recipient that Postfix does not relay to is our misconfiguration, not the recipient’s fault', async () => {
    const mailer = ownMailer()
    await settled(() => mailer.verify())
    const outcome = await mailer.send({
      ...WELCOME,
      to: { name: undefined, address: 'ada@elsewhere.example' },
    })
    expect(outcome).toEqual({
      kind: 'transient',
      scope: 'sender',
      isUnclear: true,
      reason: 'the mail server’s policy refused the message (554)',
    })
  })

  test('a bounce after acceptance suppresses its subscriber through the pipe', async () => {
    // Where Postfix relays to: a server that knows nobody.
    const store = await openStore({ kind: 'sqlite', file: `${folder}/platform.sqlite` })
    onTestFinished(() => store.close())
    const address = 'ada@bounced.example'
    await subscribe(store, 'ada', 1, { identity: address, address, id: 'id-ada' })
    const addressKey = await store.getOrCreate('address_key', () => 'the key of addresses of a test')
    const inbox = `${folder}/mail/inbox/new`
    const before = new Set(existsSync(inbox) ? await readdir(inbox) : [])
    await sendLesson(address, 'bounce@example.com', addressKey)
    let bounce = ''
    await settled(async () => {
      const [arrived] = (await readdir(inbox)).filter((name) => !before.has(name))
      if (arrived === undefined) throw new Error('no bounce arrived')
      bounce = `${inbox}/${arrived}`
    })
    const { context, stdout } = testContext({ env: mailBy('bounce@example.com'), cwd: folder })
    expect(await runProgram(['email', 'feedback', bounce, '--data', '.'], context)).toBe(0)
    expect(stdout()).toBe('hard bounce: the address does not exist (5.1.1); 1 recorded\n')
    expect(await store.feedback.find(address)).toMatchObject({
      suppression: { cause: 'hard-bounce', source: 'pipe' },
    })
    expect(await store.course.findById('id-ada')).toMatchObject({ state: 'unsubscribed' })
  })

  test.runIf(canNobodyRead(path.join(project, 'bin/platformctl.js')))(
    'the alias of the documentation takes bounces: each suppresses its subscriber',
    async () => {
      const { stdout: id } = await run('id', ['-u', 'nobody'])
      const data = `${folder}/alias`
      await mkdir(data)
      const file = `${data}/platform.sqlite`
      const store = await openStore({ kind: 'sqlite', file })
      const addressKey = await store.getOrCreate('address_key', () => 'the key of addresses of a test')
      await store.close()
      await writeFile(
        `${data}/platformctl.env`,
        `STORE_URL=sqlite:${file}\nMAILER_API_KEY=key-of-the-mailer\nMAILER_FROM=course@example.com\nMAILER_SMTP_URL=smtp://127.0.0.1:${port}\nMAILER_BOUNCE_ADDRESS=bounce@bounces.example\n`,
      )
      // The alias runs as this user, as it would run as the daemon's.
      for (const name of ['', ...(await readdir(data))])
        await chown(path.join(data, name), Number(id), Number(id))
      const address = 'grace@bounced.example'
      await sendLesson(address, 'bounce@bounces.example', addressKey)
      const after = await openStore({ kind: 'sqlite', file })
      onTestFinished(() => after.close())
      await settled(async () => {
        const found = await after.feedback.find(address)
        if (found === undefined)
          throw new Error(`nothing was recorded: ${await readFile(`${folder}/queue/maillog`, 'utf8')}`)
        expect(found).toMatchObject({ suppression: { cause: 'hard-bounce', source: 'pipe' } })
      })
    },
    60_000,
  )
})

const settings = (folder: string, uid: number, knowsNobody: number) => `compatibility_level = 3.6
queue_directory = ${folder}/queue
data_directory = ${folder}/data
mail_owner = postfix
setgid_group = postdrop
maillog_file = ${folder}/queue/maillog
maillog_file_prefixes = ${folder}
myhostname = localhost
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mydestination = bounces.example
local_recipient_maps =
alias_maps = hash:${folder}/etc/aliases
default_privs = nobody
mynetworks =
smtpd_relay_restrictions = reject_unauth_destination
smtpd_tls_security_level = none
virtual_mailbox_domains = example.com
recipient_delimiter = +
relay_domains = bounced.example
transport_maps = inline:{bounced.example=smtp:[127.0.0.1]:${knowsNobody}}
virtual_mailbox_base = ${folder}/mail
virtual_mailbox_maps = static:inbox/
virtual_minimum_uid = 1
virtual_uid_maps = static:${uid}
virtual_gid_maps = static:${uid}
`

/** The services that taking a mail and putting it into a mailbox needs, none of them in a chroot. */
const services = (port: number) => `127.0.0.1:${port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
virtual unix - n n - - virtual
local unix - n n - - local
anvil unix - - n - 1 anvil
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
smtp unix - - n - - smtp
postlog unix-dgram n - n - 1 postlogd
`

/** The alias of docs/guides/feedback.md, whose script is written for the built command and files of this test; no sudo. */
async function documentedAlias(folder: string): Promise<string> {
  const page = await readFile(path.join(project, 'docs/guides/feedback.md'), 'utf8')
  const script = /<<'END'\n(#!.*?)END\n/s.exec(page)?.[1]
  const alias = /^echo '(bounce: "\|sudo .*")'/m.exec(page)?.[1]
  if (script === undefined || alias === undefined)
    throw new Error('docs/guides/feedback.md shows no alias with a script')
  const command = `${process.execPath} ${path.join(project, 'bin/platformctl.js')}`
  const ours = script
    .replace('platformctl', () => command)
    .replace('/etc/platformctl/env', `${folder}/alias/platformctl.env`)
    .replace('/var/lib/platformctl', `${folder}/alias`)
  await writeFile(`${folder}/bounce`, ours, { mode: 0o755 })
  return `${alias.replace('sudo -n /usr/local/sbin/platformctl-bounce', `${folder}/bounce`)}\n`
}

/** A mail server that accepts no recipient. */
async function serverThatKnowsNobody() {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo: (_address, _session, callback) =>
      callback(Object.assign(new Error('5.1.1 No such user here'), { responseCode: 550 })),
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const at = server.server.address()
  if (at === null || typeof at === 'string') throw new Error('the server listens on a port')
  return { port: at.port, close: () => new Promise<void>((resolve) => server.close(() => resolve())) }
}

/** Postfix tells nobody when it is done: it is asked until it is, for at most thirty seconds. */
async function settled(look: () => Promise<void>): Promise<void> {
  const until = performance.now() + 30_000
  for (;;) {
    try {
      return await look()
    } catch (error) {
      if (performance.now() > until) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
