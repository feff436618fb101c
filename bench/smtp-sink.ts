import { createServer } from 'node:net'

/** Run as a process of its own: an SMTP server on loopback that takes everything as fast as it can, and keeps nothing. */
const END = '\r\n.\r\n'

const server = createServer((socket) => {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.write('220 sink\r\n')
  let inData = false
  let rest = ''
  socket.on('data', (chunk) => {
    rest += chunk.toString('latin1')
    let reply = ''
    for (;;) {
      if (inData) {
        const end = rest.indexOf(END)
        if (end === -1) {
          // Only what could be the beginning of the end is kept.
          rest = rest.slice(-END.length)
          break
        }
        rest = rest.slice(end + END.length)
        inData = false
        reply += '250 2.0.0 taken\r\n'
        continue
      }
      const end = rest.indexOf('\r\n')
      if (end === -1) break
      const word = rest.slice(0, 4).toUpperCase()
      rest = rest.slice(end + 2)
      if (word === 'EHLO') reply += '250-sink\r\n250-PIPELINING\r\n250 8BITMIME\r\n'
      else if (word === 'DATA') {
        reply += '354 go\r\n'
        inData = true
      } else if (word === 'QUIT') socket.end('221 bye\r\n')
      else reply += '250 2.0.0 ok\r\n'
    }
    if (reply !== '') socket.write(reply)
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`)
})
