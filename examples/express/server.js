import express from 'express'
import { nodeListener, openPlatform } from 'platformctl'
import { register } from 'platformctl/env'

register()
const platform = openPlatform({ env: process.env })

const app = express()
app.get('/hello', (_request, response) => response.send('Hello from the host.\n'))
// Last, and before any body parser: it reads bodies itself, and answers what nobody else does.
app.use(nodeListener(platform.web))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => platform.close()))
