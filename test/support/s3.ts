import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { serve } from './outside.ts'

export const S3_KEY = { S3_REGION: 'eu-central-1', S3_KEY: 'AKIAKILN', S3_SECRET: 'a-secret-of-the-storage' }

/** S3-compatible storage on loopback that keeps what is put into it, if the request is signed with the key. */
export async function s3Storage() {
  const objects = new Map<string, Buffer>()
  const { port } = await serve(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const isRight = request.method === 'PUT' && isSigned(request)
    if (isRight) objects.set(request.url ?? '', Buffer.concat(chunks))
    response.writeHead(isRight ? 200 : 403).end()
  })
  return { url: `http://127.0.0.1:${port}`, objects }
}

/** AWS Signature Version 4, as S3 asks for it. */
function isSigned({ method, url = '', headers }: IncomingMessage): boolean {
  const [, scope = '', names = '', signature = ''] =
    /Credential=AKIAKILN\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)/.exec(
      headers.authorization ?? '',
    ) ?? []
  const fields = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`)
  const canonical = [method, url, '', fields.join(''), names, headers['x-amz-content-sha256']].join('\n')
  const hash = createHash('sha256').update(canonical).digest('hex')
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, hash].join('\n')
  const mac = (key: string | Buffer, word: string) => createHmac('sha256', key).update(word).digest()
  const key = scope.split('/').reduce<string | Buffer>(mac, `AWS4${S3_KEY.S3_SECRET}`)
  return scope.includes(`/${S3_KEY.S3_REGION}/s3/`) && mac(key, text).toString('hex') === signature
}
