import { createServer } from 'node:http'

/** Run as a process of its own: a mail API that answers after so many milliseconds (the first argument). */
const delay = Number(process.argv[2] ?? 0)
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    const answer = () =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"msg_0123456789"}')
    if (delay > 0) setTimeout(answer, delay)
    else answer()
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`)
})
