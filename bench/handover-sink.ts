import { createServer } from 'node:http'
import { request } from 'undici'

/** Run as a process of its own: answers 202 and then posts the mail, kept nowhere, to the mail API. Takes the API's address and the mail, with {email} in it. */
const [api = '', mail = ''] = process.argv.slice(2)
const server = createServer(async (asked, response) => {
  let text = ''
  for await (const chunk of asked.setEncoding('utf8')) text += chunk
  const { email } = JSON.parse(text) as { email: string }
  response.writeHead(202, { 'content-type': 'application/json' }).end('{"status":"pending","sent":true}')
  const body = mail.replaceAll('{email}', email)
  const answer = await request(api, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer provider-key' },
    body,
  })
  await answer.body.text()
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`)
})
