import Fastify from 'fastify'
import { nodeListener, openPlatform } from 'platformctl'
import { register } from 'platformctl/env'

register()
const platform = openPlatform({ env: process.env })
const platformctl = nodeListener(platform.web)

const app = Fastify()
app.get('/hello', () => 'Hello from the host.\n')
app.register(async (scope) => {
  // The platform reads bodies itself, in its own limits.
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
  scope.all('/*', (request, reply) => {
    reply.hijack()
    return platformctl(request.raw, reply.raw)
  })
})
app.addHook('onClose', () => platform.close())

await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })
console.log(`http://127.0.0.1:${app.server.address().port}`)

process.once('SIGTERM', () => app.close())
