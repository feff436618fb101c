import { createServer } from 'node:http'

/** Run as a process of its own: a mail API on loopback that reads everything and says that it took it. */
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"id":"msg_0123456789"}')
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`)
})
