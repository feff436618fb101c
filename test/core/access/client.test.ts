import fc from 'fast-check'
import { expect, test } from 'vitest'
import { clientKey } from '../../../src/core/access/client.ts'

const TRUST = ['10.0.0.0/8', '192.0.2.7', '2001:db8:ffff::/48']

test.each([
  // Without a trusted proxy, the request's own claims are ignored.
  [[], '198.51.100.1', '1.2.3.4', '198.51.100.1'],
  [TRUST, '198.51.100.1', '1.2.3.4', '198.51.100.1'],
  [TRUST, '10.0.0.1', null, '10.0.0.1'],
  // From the right, through the trusted, to the first that is not: what stands left of it is the client's own claim.
  [TRUST, '10.0.0.1', '1.1.1.1, 203.0.113.9, 10.3.3.3, 192.0.2.7', '203.0.113.9'],
  [TRUST, '10.0.0.1', '10.9.9.9, 10.8.8.8', '10.9.9.9'],
  // A hop that is no address ends the walk at the last that was one.
  [TRUST, '10.0.0.1', '203.0.113.9, nonsense', '10.0.0.1'],
  [TRUST, '10.0.0.1', 'unknown, 10.2.2.2', '10.2.2.2'],
  // Ports, brackets, zones, and IPv4 in IPv6 dress, as proxies write them.
  [TRUST, '::ffff:10.0.0.1', '203.0.113.9:4711', '203.0.113.9'],
  [TRUST, '2001:db8:ffff::1', '[2001:db8:1:2ff::9]:443', '2001:db8:1:200::/56'],
  [TRUST, '10.0.0.1', '::ffff:203.0.113.9', '203.0.113.9'],
  [TRUST, '10.0.0.1', '::ffff:102:304', '1.2.3.4'],
  [TRUST, '::ffff:a00:1', '0:0:0:0:0:ffff:1.2.3.4', '1.2.3.4'],
  [TRUST, '10.0.0.1', '[0000:0::0:FFFF:0102:0304]:443', '1.2.3.4'],
  [TRUST, '10.0.0.1', '::ffff:0:102:304', '0:0:0:0::/56'],
  [[], '::192.0.2.33', null, '0:0:0:0::/56'],
  [[], '1:2:3:4ff:5:6:192.0.2.33', null, '1:2:3:400::/56'],
  [[], '2001:db8::2ff:5:6:7:8', null, '2001:db8:0:200::/56'],
  [[], 'fe80::1%eth0', null, 'fe80:0:0:0::/56'],
  [[], '2001:db8:1:2aa:1:2:3:4', null, '2001:db8:1:200::/56'],
  // Embedded: no socket. The host's proxy is believed as far as proxies are.
  [[], undefined, '203.0.113.9', 'embedded'],
  [TRUST, undefined, '1.1.1.1, 203.0.113.9', '203.0.113.9'],
  [TRUST, undefined, null, 'embedded'],
] as const)(
  'trusting %j, a socket from %s that forwards %j counts as %s',
  (trust, socket, forwarded, key) => {
    expect(clientKey(trust)({ socket, forwarded })).toBe(key)
  },
)

test('a trusted proxy’s client cannot choose its key, whatever it sends in front of what the proxy adds', () => {
  const keyOf = clientKey(TRUST)
  fc.assert(
    fc.property(fc.string(), (claimed) => {
      expect(keyOf({ socket: '10.0.0.1', forwarded: `${claimed}, 203.0.113.9` })).toBe('203.0.113.9')
    }),
  )
})
