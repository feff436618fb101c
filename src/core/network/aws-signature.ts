import { createHash, createHmac } from 'node:crypto'

/** Headers that sign a request without a query: AWS Signature Version 4. `headers`: more to sign, in lower case. */
export function awsSigned(
  request: Record<'method' | 'host' | 'path' | 'body', string> & {
    readonly headers?: Record<string, string>
  },
  { id, secret, region, service }: Record<'id' | 'secret' | 'region' | 'service', string>,
  now: number,
): Readonly<Record<string, string>> {
  const { method, host, path, body, headers } = request
  const date = new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const day = date.slice(0, 8)
  const scope = `${day}/${region}/${service}/aws4_request`
  const signed = Object.entries({ host, 'x-amz-date': date, ...headers }).toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  )
  const names = signed.map(([name]) => name).join(';')
  const fields = signed.map(([name, value]) => `${name}:${value}\n`).join('')
  const canonical = `${method}\n${path}\n\n${fields}\n${names}\n${sha256(body)}`
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`)
  const signature = hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha256(canonical)}`).toString('hex')
  return {
    'x-amz-date': date,
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${id}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  }
}

/** The region in an address of Amazon, as in `email.eu-central-1.amazonaws.com`. */
export const awsRegion = (url: string) => /\b[a-z]{2,4}(?:-[a-z]+){1,2}-\d\b/.exec(url)?.[0]

export const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
