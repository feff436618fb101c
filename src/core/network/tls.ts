import type { Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'

/**
 * Speaks TLS over a connected socket. Rejects when the certificate does not hold for `host`, unless any
 * certificate is accepted. Loaded for https only.
 */
export function secure(input: {
  readonly socket: Socket
  /** A name or an address: without its brackets. */
  readonly host: string
  readonly ca: string | undefined
  readonly anyCertificate?: boolean
}): Promise<{ readonly line: TLSSocket; readonly certificateEnd: number }> {
  const { socket, host, ca, anyCertificate = false } = input
  return new Promise((resolve, reject) => {
    const line = connect({
      socket,
      host,
      // An address is no server name (RFC 6066 §3).
      ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
      ...(ca === undefined ? {} : { ca }),
      rejectUnauthorized: !anyCertificate,
      ALPNProtocols: ['http/1.1'],
    })
    line.once('secureConnect', () =>
      resolve({ line, certificateEnd: Date.parse(line.getPeerCertificate().valid_to) }),
    )
    line.on('error', reject)
  })
}
