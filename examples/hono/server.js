import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { openPlatform } from 'platformctl'
import { register } from 'platformctl/env'

register()
const platform = openPlatform({ env: process.env })

const app = new Hono()
app.get('/hello', (c) => c.text('Hello from the host.\n'))
app.all('*', (c) => platform.web.fetch(c.req.raw, c.env))

const server = serve(
  { fetch: app.fetch, port: Number(process.env.PORT ?? 3000), hostname: '127.0.0.1' },
  ({ port }) => console.log(`http://127.0.0.1:${port}`),
)

process.once('SIGTERM', () => server.close(() => platform.close()))
