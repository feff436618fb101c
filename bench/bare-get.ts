import { request } from 'node:http'

/** The least that a prober can do: one request on a line of its own, the body as JSON. */
export function bareGet(url: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    request(`${url}/api/health`, { agent: false }, (answer) => {
      let body = ''
      answer
        .setEncoding('utf8')
        .on('data', (chunk: string) => {
          body += chunk
        })
        .on('end', () => resolve(JSON.parse(body)))
        .on('error', reject)
    })
      .on('error', reject)
      .end()
  })
}
