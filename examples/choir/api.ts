import { hash, timingSafeEqual } from 'node:crypto'
import Fastify from 'fastify'
import { nodeListener, openPlatform } from 'platformctl'
import { readPlatformEnv, registerPlatform } from 'platformctl/config'
import definition from './platform.config.ts'

registerPlatform(definition)
const { members } = readPlatformEnv(definition, process.env)
const platform = openPlatform({ env: process.env, platform: definition })
const platformctl = nodeListener(platform.web)

const digest = (text: string) => hash('sha256', text, 'buffer')
const token = digest(`Bearer ${members.API_TOKEN.reveal()}`)

interface Invoice {
  readonly number: string
  readonly email: string
  readonly language: string
  readonly amount: string
}

const app = Fastify()
app.get('/up', () => ({ status: 'up' }))
app.post<{ Body: Invoice }>(
  '/invoices',
  {
    preHandler: async (request, reply) => {
      if (!timingSafeEqual(digest(request.headers.authorization ?? ''), token)) await reply.code(401).send()
    },
    schema: {
      body: {
        type: 'object',
        required: ['number', 'email', 'language', 'amount'],
        additionalProperties: false,
        properties: {
          number: { type: 'string', pattern: '^[0-9]+$' },
          email: { type: 'string' },
          language: { type: 'string' },
          amount: { type: 'string' },
        },
      },
    },
  },
  async ({ body: { number, email, language, amount } }, reply) => {
    const result = await platform.mail.send('invoice', {
      to: email,
      language,
      slots: { number, amount, invoiceUrl: `${process.env.NEXT_PUBLIC_SITE_URL}/invoices/${number}` },
      // The office may ask twice: an invoice is mailed once.
      key: `invoice.${number}`,
      durable: true,
    })
    return reply.code(result.sent ? 202 : 503).send(result)
  },
)
app.register(async (scope) => {
  // The platform reads bodies itself, in its own limits.
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
  scope.all('/api/*', (request, reply) => {
    reply.hijack()
    return platformctl(request.raw, reply.raw)
  })
})
app.addHook('onClose', () => platform.close())

console.log(await app.listen({ port: Number(process.env.PORT ?? 8081), host: '127.0.0.1' }))

process.once('SIGTERM', () => app.close())
