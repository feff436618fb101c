import type { KeyObject } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import DKIM from 'nodemailer/lib/dkim'

/** Header fields to sign: those of RFC 6376 §5.4.1, and the fields for unsubscribing (RFC 8058 §4). */
const SIGNED =
  'From:Reply-To:Subject:Date:Message-ID:To:MIME-Version:Content-Type:Auto-Submitted:Feedback-ID:List-Id:List-Unsubscribe:List-Unsubscribe-Post'

export interface DkimSigner {
  /** The message with its signature in front. */
  sign(message: Buffer): Promise<Buffer>
}

/** Signs for a domain with the key that its DNS record `SELECTOR._domainkey.DOMAIN` publishes. */
export function createDkimSigner({
  domain,
  selector,
  key,
}: {
  readonly domain: string
  readonly selector: string
  readonly key: KeyObject
}): DkimSigner {
  const signer = new DKIM({
    domainName: domain,
    keySelector: selector,
    privateKey: key,
    headerFieldNames: SIGNED,
  })
  return { sign: (message) => buffer(signer.sign(message)) }
}
