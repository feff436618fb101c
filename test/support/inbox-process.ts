import { writeFileSync } from 'node:fs'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'

/** Run as a process of its own: a mail server on 127.0.0.1:25 that writes the text of each mail into a folder. */
const [, , folder = '.'] = process.argv
let count = 0
new SMTPServer({
  authOptional: true,
  disabledCommands: ['AUTH', 'STARTTLS'],
  onData(stream, _session, done) {
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', async () => {
      const { subject, text = '' } = await PostalMime.parse(Buffer.concat(chunks))
      count += 1
      writeFileSync(`${folder}/${count}`, `${subject}\n${text}`)
      done()
    })
  },
}).listen(25, '127.0.0.1')
