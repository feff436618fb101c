import { mkdir, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '../core/clock.ts'
import { awsRegion, awsSigned, sha256 } from '../core/network/aws-signature.ts'
import { CAUSES } from '../core/network/causes.ts'
import { get, type Network } from '../core/network/get.ts'
import type { Secret } from '../core/secret.ts'
import { trimEnd } from '../core/trim-end.ts'
import { fileNames, fileText, type KeptStatus, typeOf } from './files.ts'

/** The key to a bucket of S3-compatible storage. */
export interface BucketKey {
  readonly id: string
  readonly secret: Secret
  readonly region: string | undefined
}

const ANSWER_MS = 20_000

/** Keeps the status as files in a folder, or under the address of a bucket. Writes those that have changed, and deletes none. */
export function publisher(
  clock: Clock,
  target: string,
  key?: BucketKey,
  network?: Network,
): (status: KeptStatus) => Promise<void> {
  const kept = new Map<string, string>()
  const keep = key ? intoBucket(clock, target, key, network) : intoFolder(target)
  return async (status) => {
    for (const name of fileNames(status.snapshot)) {
      const text = fileText(status, name, clock.now()) ?? ''
      const sum = sha256(text)
      if (kept.get(name) === sum) continue
      await keep(name, text)
      kept.set(name, sum)
    }
  }
}

function intoFolder(folder: string) {
  return async (name: string, text: string) => {
    const file = path.join(folder, name)
    await mkdir(path.dirname(file), { recursive: true })
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
  }
}

/** Of the bucket in the address, as in `https://s3.eu-central-1.amazonaws.com/BUCKET`. */
function intoBucket(clock: Clock, target: string, { id, secret, region }: BucketKey, network?: Network) {
  const signing = {
    id,
    secret: secret.reveal(),
    region: region ?? awsRegion(target) ?? 'us-east-1',
    service: 's3',
  }
  return async (name: string, text: string) => {
    const url = new URL(`${trimEnd(target, '/')}/${name}`)
    const headers = { 'x-amz-content-sha256': sha256(text) }
    const request = { method: 'PUT', host: url.host, path: url.pathname, body: text, headers }
    const outcome = await get({
      url,
      put: text,
      headers: {
        'content-type': typeOf(name),
        'content-length': String(Buffer.byteLength(text)),
        'cache-control': 'max-age=30',
        ...awsSigned(request, signing, clock.now()),
      },
      timeoutMs: ANSWER_MS,
      largestBytes: 0,
      wantsBody: () => false,
      monotonic: clock.monotonic,
      network,
    })
    if (!outcome.answered) throw new Error(CAUSES[outcome.cause].meaning)
    if (outcome.status >= 300) throw new Error(`the bucket answers with ${outcome.status} for ${name}`)
  }
}
