import { createServer } from 'node:http'
import { health, ROUTE, say } from './health.mjs'

const server = createServer((request, response) => {
  if (request.url !== ROUTE) return response.writeHead(404).end()
  const body = JSON.stringify(health())
  response.writeHead(200, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  })
  response.end(body)
})
server.listen(0, '127.0.0.1', () => say(server.address().port))
