import { createHash, createHmac } from 'node:crypto'
import { asciiAddress } from '../../address.ts'
import { mimeOf } from '../mime/mime.ts'
import type { HttpFault } from '../outcome.ts'
import type { ApiForm } from './api-form.ts'

const PATH = '/v2/email/outbound-emails'
const REGION = /\b[a-z]{2,4}(?:-[a-z]+){1,2}-\d\b/

/** The region that an address of Amazon names, as in `email.eu-central-1.amazonaws.com`; their default if it names none. */
const regionOf = (url: string): string => REGION.exec(url)?.[0] ?? 'us-east-1'

interface Signing {
  readonly id: string
  readonly secret: string
  readonly region: string
  readonly service: string
  readonly now: number
}

/** Headers that sign a request without a query: AWS Signature Version 4. */
export function signedHeaders(
  { method, host, path, body }: Record<'method' | 'host' | 'path', string> & { readonly body: string },
  { id, secret, region, service, now }: Signing,
): Record<'x-amz-date' | 'authorization', string> {
  const date = new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const day = date.slice(0, 8)
  const scope = `${day}/${region}/${service}/aws4_request`
  const canonical = `${method}\n${path}\n\nhost:${host}\nx-amz-date:${date}\n\nhost;x-amz-date\n${sha256(body)}`
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`)
  const signature = hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha256(canonical)}`).toString('hex')
  return {
    'x-amz-date': date,
    authorization: `AWS4-HMAC-SHA256 Credential=${id}/${scope}, SignedHeaders=host;x-amz-date, Signature=${signature}`,
  }
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

/** Errors of SES whose status says less than their name. */
const ROWS: readonly (readonly [error: RegExp, row: HttpFault['row']])[] = [
  [/^(?:Throttling|TooManyRequests|LimitExceeded)/, 'rate-limited'],
  [/^(?:SendingPaused|AccountSuspended|MailFromDomainNotVerified)/, 'key-refused'],
  // The configuration set that a header names.
  [/^NotFound/, 'request-refused'],
]

/** Amazon SES, version 2 of its API, with the whole message as MIME. It recognizes no repeats. */
export const ses: ApiForm = {
  kind: 'ses',
  honorsKey: false,
  path: PATH,
  open(key, url, now) {
    const [id = '', secret = ''] = key.reveal().split(/:(.*)/s)
    const signing = { id, secret, region: regionOf(url.href), service: 'ses' }
    const sign = (method: 'GET' | 'POST', path: string, body: string) =>
      signedHeaders({ method, host: url.host, path, body }, { ...signing, now: now() })
    return {
      request(message, path) {
        const body = JSON.stringify({
          FromEmailAddress: asciiAddress(message.from.address),
          Destination: { ToAddresses: [asciiAddress(message.to.address)] },
          Content: { Raw: { Data: mimeOf(message).toString('base64') } },
        })
        return { headers: sign('POST', path, body), body: Buffer.from(body) }
      },
      check: () => ({
        method: 'GET',
        path: '/v2/email/account',
        headers: sign('GET', '/v2/email/account', ''),
      }),
    }
  },
  idIn: 'MessageId',
  rowOf: ({ errorType = '' }) => ROWS.find(([error]) => error.test(errorType))?.[1],
  // A key that may only send is refused everything else by this name, and a wrong key by another.
  knowsKey: ({ errorType = '' }) => errorType.startsWith('AccessDenied'),
}
