import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { VARIABLES } from '../support/learning.ts'
import { serveBodies } from '../support/servers.ts'

/** A mail provider that keeps what it was sent, and answers every third request with an error that quotes its key. */
async function provider() {
  const bodies: string[] = []
  const url = await serveBodies((body, response, request) => {
    // A probe asks by HEAD whether the provider is there.
    if (request.method === 'POST') bodies.push(body)
    if (bodies.length % 3 === 0)
      response.writeHead(500).end(`wrong key ${request.headers.authorization}: ${body}`)
    else response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"id":"m1"}')
  })
  return { url, bodies }
}

const canary = (name: string) => `canary-${name.toLowerCase().replaceAll('_', '-')}-0123456789`

test('the daemon never writes a secret, a token or an address', async () => {
  const mail = await provider()
  // Set only one of two variables that exclude each other; addresses have a form of their own.
  const left = new Set([
    'DATASTORE_JWKS_URL',
    'MAILER_SMTP_URL',
    'MODEL_A_MODEL',
    'STORE_URL',
    'JOB_STORE_URL',
  ])
  const secrets = Object.fromEntries(
    VARIABLES.filter(({ kind, name }) => kind === 'secret' && !left.has(name)).map(({ name }) => [
      name,
      canary(name),
    ]),
  )
  const folder = await emptyFolder()
  const daemon = await startDaemon(['--data', folder], {
    cwd: folder,
    env: {
      ...secrets,
      LOG_LEVEL: 'debug',
      NEXT_PUBLIC_DATASTORE_URL: 'http://127.0.0.1:9',
      NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-0123456789-0123456789-0123456789',
      PAYMENTS_API_URL: 'http://127.0.0.1:9',
      PAYMENTS_PRICE_PRO_MONTHLY: 'price_1',
      SHAREDSTORE_REST_URL: 'http://127.0.0.1:9',
      MAILER_API_URL: mail.url,
      MAILER_FEEDBACK_PROVIDER: 'mailgun',
      ALERT_WEBHOOK_URL: 'http://127.0.0.1:9',
      MAILER_FROM: 'Course <course@sender.example>',
      CLOUDMODEL_API_ENDPOINT: 'http://127.0.0.1:9',
      CLOUDMODEL_API_DEPLOYMENT: 'd',
      HARDWARE_A_INSTANCE: 'i',
      CLOUDB_ACCESS_KEY_ID: 'AKIA0',
      CLOUDB_REGION: 'eu-west-1',
      CLOUDQPU_SUBSCRIPTION_ID: 's',
      CLOUDQPU_RESOURCE_GROUP: 'g',
      CLOUDQPU_WORKSPACE: 'w',
      CLOUDQPU_LOCATION: 'l',
      CLOUDQPU_TENANT_ID: 't',
      CLOUDQPU_CLIENT_ID: 'c',
      NEXT_PUBLIC_ERRORTRACK_DSN: '',
      ERRORTRACK_AUTH_TOKEN: '',
    },
  })
  onTestFinished(async () => void (await daemon.stop('SIGKILL')))
  const answers: string[] = []
  const ask = async (target: string, init: RequestInit = {}) => {
    const response = await fetch(`${daemon.urls.web}${target}`, init)
    const text = await response.text()
    answers.push(`${JSON.stringify([...response.headers])}${text}`)
    return { status: response.status, text }
  }
  const json = { 'Content-Type': 'application/json' }
  const post = (target: string, body: unknown, headers: Record<string, string> = {}) =>
    ask(target, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) })
  const bearer = (value: string | undefined) => ({ Authorization: `Bearer ${value}` })

  // Addresses: subscribed, refused, in the wrong place.
  for (const n of [1, 2, 3, 4])
    await post('/api/email/subscribe', { email: `canary-person-${n}@canary.example` })
  await post('/api/email/subscribe', { email: 'canary-person-5@canary.example', name: 'canary-name' })
  await post('/api/email/subscribe', { email: 'canary person@canary.example' })
  await ask('/api/email/subscribe?email=canary-person-6@canary.example', {
    method: 'POST',
    headers: json,
    body: '{"canary-key',
  })
  const confirmations = () => mail.bodies.flatMap((body) => /token=([\w-]+)/.exec(body)?.[1] ?? [])
  await expect.poll(() => confirmations().length).toBe(4)
  // Tokens: used, used again, damaged.
  const tokens = confirmations()
  for (const token of tokens) {
    await ask(`/api/email/confirm?token=${token}`, { headers: { Accept: 'text/html' } })
    await ask(`/api/email/confirm?token=${token}canary`, { headers: { Accept: 'text/html' } })
  }
  // Secrets: right, wrong, where they do not belong.
  for (const limit of [1, 10])
    await post(`/api/email/dispatch?limit=${limit}`, {}, bearer(secrets.EMAIL_DISPATCH_SECRET))
  await post('/api/email/dispatch', { limit: 'canary-limit' }, bearer(secrets.EMAIL_DISPATCH_SECRET))
  await post(`/api/email/dispatch?secret=${secrets.EMAIL_DISPATCH_SECRET}`, {}, bearer('canary-wrong'))
  await ask('/api/health?deep=1', { headers: bearer(secrets.HEALTH_DEEP_TOKEN) })
  await ask('/api/health?deep=1', { headers: bearer('canary-wrong') })
  const token = `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.${Buffer.from('{"sub":"canary"}').toString('base64url')}.canary`
  await post('/api/email', { template: 'welcome', inputs: {} }, bearer(token))
  await post('/api/checkout', { price: 'canary-price' }, bearer(secrets.DATASTORE_SERVICE_ROLE_KEY))
  await post('/api/payments/webhook', { id: 'canary' }, { 'Stripe-Signature': 't=1,v1=canary' })
  await post('/api/analytics', {
    events: [
      {
        kind: 'page.viewed',
        at: Date.now(),
        properties: { email: 'canary-person-7@canary.example', path: '/?canary' },
      },
    ],
  })
  await ask('/canary-path?canary=query', {
    headers: { Cookie: 'canary=1', Referer: 'http://canary.example/', 'User-Agent': 'canary' },
  })
  const links = mail.bodies.flatMap(
    (body) => /unsubscribe\?s=([\w.-]+)&(?:amp;)?t=([\w-]+)/.exec(body)?.slice(1, 3) ?? [],
  )
  expect(links.length).toBeGreaterThan(0)
  await ask(`/api/email/unsubscribe?s=${links[0]}&t=${links[1]}`)
  expect(await daemon.stop()).toBe(0)

  const written = JSON.stringify(daemon.lines)
  expect(daemon.lines.filter(({ event }) => event === 'request').length).toBeGreaterThan(20)
  expect(daemon.lines.map(({ event }) => event)).toEqual(
    expect.arrayContaining(['confirmation_sent', 'dispatched', 'limiter_fallback']),
  )
  const forbidden = ['canary', 'canary.example', 'sender.example', links[1] ?? '', token, ...tokens]
  for (const text of forbidden) expect(written).not.toContain(text)

  // Answers may say back what a request asked, but never a secret of the platform's or a token of somebody's.
  for (const text of [...Object.values(secrets), ...tokens]) expect(answers.join('\n')).not.toContain(text)
  // At rest addresses are kept, since mail goes there; tokens and secrets are not.
  const files = (await readdir(folder)).filter((name) => name.includes('sqlite'))
  expect(files.length).toBeGreaterThan(0)
  for (const file of files) {
    const bytes = await readFile(path.join(folder, file), 'latin1')
    for (const text of [...Object.values(secrets), ...tokens, links[1] ?? ''])
      expect(bytes).not.toContain(text)
  }
})
