import Fastify from 'fastify'
import { health, ROUTE, say } from './health.mjs'

const app = Fastify()
app.get(ROUTE, async () => health())
await app.listen({ port: 0, host: '127.0.0.1' })
say(app.server.address().port)
