import { createServer } from 'node:http'

/** The floor of the HTTP benchmarks, a process of its own: answers the bytes that come on standard input, and nothing else. */
const chunks: Buffer[] = []
for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
const { headers, body } = JSON.parse(Buffer.concat(chunks).toString()) as {
  headers: Record<string, string>
  body: string
}
const server = createServer((_, response) => {
  response.writeHead(200, headers)
  response.end(body)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined }))
})
