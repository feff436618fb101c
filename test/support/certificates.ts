import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

export interface Certificates {
  /** The authority's certificate, in PEM. */
  readonly ca: string
  /** A key and certificate signed by it: for a name or an address, from and until a day (`20260101000000Z`). */
  issue(options: { readonly name: string; readonly from?: string; readonly until?: string }): {
    readonly key: string
    readonly cert: string
  }
  /** Removes its folder. */
  close(): void
}

/** An authority of its own, made by openssl, whose certificates may begin and end when the test wants. */
export function authority(): Certificates {
  const folder = mkdtempSync(path.join(tmpdir(), 'platformctl-test-'))
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const read = (file: string) => readFileSync(path.join(folder, file), 'utf8')
  const key = (file: string) => openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', file)
  mkdirSync(path.join(folder, 'new'))
  writeFileSync(path.join(folder, 'index.txt'), '')
  writeFileSync(path.join(folder, 'serial'), '01\n')
  writeFileSync(
    path.join(folder, 'ca.cnf'),
    `[ca]
default_ca = us
[us]
dir = .
database = index.txt
serial = serial
new_certs_dir = new
certificate = ca.pem
private_key = ca.key
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
`,
  )
  key('ca.key')
  openssl(
    'req',
    '-x509',
    '-new',
    '-key',
    'ca.key',
    '-subj',
    '/CN=test authority',
    '-days',
    '30',
    '-out',
    'ca.pem',
  )
  let count = 0
  return {
    ca: read('ca.pem'),
    close: () => rmSync(folder, { recursive: true, force: true }),
    issue({ name, from, until }) {
      count += 1
      const file = `leaf${count}`
      const san = /^[\d.]+$|:/.test(name) ? `IP:${name}` : `DNS:${name}`
      key(`${file}.key`)
      openssl(
        'req',
        '-new',
        '-key',
        `${file}.key`,
        '-subj',
        `/CN=${name}`,
        '-addext',
        `subjectAltName=${san}`,
        '-out',
        `${file}.csr`,
      )
      openssl(
        ...['ca', '-batch', '-config', 'ca.cnf', '-in', `${file}.csr`, '-out', `${file}.pem`, '-notext'],
        ...['-startdate', from ?? day(-1), '-enddate', until ?? day(20)],
      )
      return { key: read(`${file}.key`), cert: read(`${file}.pem`) }
    },
  }
}

/** ASN.1 GeneralizedTime, so many days from now. */
export function day(offset: number): string {
  const date = new Date(Date.now() + offset * 24 * 60 * 60 * 1000)
  return `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`
}
