import { globSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { generate } from 'selfsigned'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { hasProgram } from '../support/programs.ts'

/** Where Debian has servers. */
const PATH = `${process.env.PATH}:/usr/sbin`
const shipped = (name: string) =>
  readFile(fileURLToPath(new URL(`../../deploy/proxy/${name}`, import.meta.url)), 'utf8')

/** In place of the ranges of Cloudflare. */
const CDN = '127.0.0.9/32'

interface Ports {
  readonly http: number
  readonly https: number
  readonly web: string
  readonly api: string
}

/** The file as it ships, but for what this machine cannot have: ports below 1024, fixed ports, and a public certificate. */
const PROXIES = {
  nginx: {
    program: ['nginx', '-v'],
    package: 'nginx-light',
    async prepare(folder: string, { http, https, web, api }: Ports) {
      const pem = path.join(folder, 'pem')
      const { cert, private: key } = await generate([{ name: 'commonName', value: 'www.example.com' }])
      await writeFile(`${pem}.crt`, cert)
      await writeFile(`${pem}.key`, key)
      const text = (await shipped('nginx.conf'))
        .replaceAll(/^ *listen \[::].*\n/gm, '')
        .replaceAll('/var/log/nginx', folder)
        .replace('listen 80;', `listen 127.0.0.1:${http};`)
        .replace('listen 443 ssl;', `listen 127.0.0.1:${https} ssl;`)
        .replace('/etc/letsencrypt/live/www.example.com/fullchain.pem', `${pem}.crt`)
        .replace('/etc/letsencrypt/live/www.example.com/privkey.pem', `${pem}.key`)
        .replace('127.0.0.1:3000', web)
        .replace('127.0.0.1:8000', api)
      const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (one) => `${one}_temp_path ${folder};`,
      )
      const main = `daemon off; master_process off; pid ${folder}/pid; events {} http { access_log off; ${own.join(' ')}\n${text}}`
      await writeFile(path.join(folder, 'nginx.conf'), main)
      return ['-e', 'stderr', '-c', path.join(folder, 'nginx.conf')]
    },
  },
  Caddy: {
    program: ['caddy', 'version'],
    package: 'caddy',
    async prepare(folder: string, { http, https, web, api }: Ports) {
      const options = `admin off\nlocal_certs\nskip_install_trust\nhttp_port ${http}\nhttps_port ${https}\nstorage file_system ${folder}`
      const text = (await shipped('Caddyfile'))
        .replace('127.0.0.1:3000', web)
        .replace('127.0.0.1:8000', api)
        .replace('# trusted_proxies 173.245.48.0/20', `trusted_proxies ${CDN}`)
        .replace(/^\{$/m, `{\n${options}`)
      await writeFile(path.join(folder, 'Caddyfile'), text)
      return ['run', '--config', path.join(folder, 'Caddyfile')]
    },
  },
} as const

interface Answer {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface Asked {
  readonly host?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer
  /** Loopback has many addresses: each is a client of its own. */
  readonly from?: string
}

function ask(port: number, url: string, { host = 'www.example.com', headers, body, from }: Asked = {}) {
  return new Promise<Answer>((resolve, reject) => {
    const call = request(
      {
        host: '127.0.0.1',
        port,
        path: url,
        method: body === undefined ? 'GET' : 'POST',
        headers: { host, ...headers },
        servername: host,
        rejectUnauthorized: false,
        ...(from !== undefined && { localAddress: from }),
      },
      async (response) => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk as Buffer)
        resolve({
          status: response.statusCode,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        })
      },
    )
    call.on('error', reject)
    call.end(body)
  })
}

describe.each(Object.entries(PROXIES))('the file of deploy/proxy for %s', (name, proxy) => {
  const here = hasProgram(proxy.program, proxy.package)

  test.skipIf(!here)('serves TLS and passes on each visitor’s own address, also behind a CDN', async () => {
    const folder = await emptyFolder()
    const daemon = await startDaemon(['--data', path.join(folder, 'data')], {
      cwd: folder,
      env: {
        TRUST_PROXY: `127.0.0.1,${CDN}`,
        NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
        MAILER_FEEDBACK_PROVIDER: 'standard',
        MAILER_FEEDBACK_SECRET: Buffer.alloc(32, 1).toString('base64'),
      },
    })
    onTestFinished(async () => void (await daemon.stop()))
    const bare = (url: string) => url.replace('http://', '')
    const ports = {
      http: await freePort(),
      https: await freePort(),
      web: bare(daemon.urls.web),
      api: bare(daemon.urls.api),
    }
    const args = await proxy.prepare(folder, ports)
    const server = execa(proxy.program[0], args, { env: { PATH, HOME: folder }, reject: false, all: true })
    onTestFinished(async () => {
      server.kill()
      await server
    })
    // Caddy listens before it has made the certificate of each name.
    for (const host of ['www.example.com', 'api.example.com'])
      await expect
        .poll(() => ask(ports.https, '/api/health', { host }).catch(String), { timeout: 20_000 })
        .toMatchObject({ status: 200 })

    const page = await ask(ports.https, '/')
    expect(page.status, page.body).toBe(200)
    expect(page.headers['content-type']).toMatch(/^text\/html/)
    const api = await ask(ports.https, '/api/health', { host: 'api.example.com' })
    expect(JSON.parse(api.body)).toMatchObject({ service: 'api' })

    const plain = await fetch(`http://127.0.0.1:${ports.http}/status?of=web`, {
      headers: { host: 'www.example.com' },
      redirect: 'manual',
    })
    expect([301, 308]).toContain(plain.status)

    // Whatever a client writes into the field, it stays one client; another has a quota of its own.
    const subscribe = (from: string, forwarded: string) =>
      ask(ports.https, '/api/email/subscribe', {
        from,
        headers: { 'content-type': 'application/json', 'x-forwarded-for': forwarded },
        body: '{}',
      })
    const answers: (number | undefined)[] = []
    for (let n = 0; n < 32; n += 1) answers.push((await subscribe('127.0.0.2', `192.0.2.${n}`)).status)
    expect(answers.at(-1)).toBe(429)
    expect(answers.filter((status) => status === 429).length).toBeLessThan(5)
    expect((await subscribe('127.0.0.3', '192.0.2.1')).status).toBe(400)
    // Of what a CDN forwards, its own entry is the last, and again each visitor is one client.
    const behind = (visitor: string) => subscribe('127.0.0.9', `192.0.2.1, ${visitor}`)
    for (let n = 0; n < 32; n += 1) expect((await behind(`198.51.100.${n}`)).status).toBe(400)
    answers.length = 0
    for (let n = 0; n < 32; n += 1) answers.push((await behind('203.0.113.1')).status)
    expect(answers.at(-1)).toBe(429)

    // One byte above what a service reads gets that service's answer; far more gets the proxy's. Again, because a proxy
    // that still sends the body when the connection is closed says 502.
    const feedback = (bytes: number) =>
      ask(ports.https, '/api/email/feedback/standard', { body: Buffer.alloc(bytes, 'a') }).catch(String)
    await expect
      .poll(() => feedback(1024 * 1024 + 1))
      .toMatchObject({ status: 413, body: expect.stringContaining('"status":413') })
    await expect.poll(() => feedback(3 * 1024 * 1024)).toMatchObject({ status: 413 })

    const health = await ask(ports.https, '/api/health')
    expect(health.body).not.toContain('TRUST_PROXY')

    await ask(ports.https, '/api/email/confirm?token=canary')
    await fetch(`http://127.0.0.1:${ports.http}/api/email/confirm?token=canary`, { redirect: 'manual' })
    await daemon.stop()
    expect(await ask(ports.https, '/api/email/confirm?token=canary')).toMatchObject({ status: 502 })
    server.kill()
    expect((await server).all).not.toContain('canary')
    const logs = globSync(path.join(folder, '*.log')).map((log) => readFileSync(log, 'utf8'))
    expect(logs.join('')).not.toContain('canary')
    // Caddy logs no requests by default.
    if (name === 'nginx') expect(logs.join('')).toContain('"GET /api/email/confirm" 400')
  })
})
