import { createServer } from 'node:http'
import { nodeListener, openPlatform } from 'platformctl'
import { register } from 'platformctl/env'

register()
const platform = openPlatform({ env: process.env })
const platformctl = nodeListener(platform.web)

const server = createServer((request, response) => {
  if (request.url === '/hello') response.end('Hello from the host.\n')
  else platformctl(request, response)
})
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => platform.close()))
