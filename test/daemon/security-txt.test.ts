import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import { openPlatform, type PlatformOptions } from '../../src/daemon/index.ts'
import { asking } from '../support/opened.ts'

const NOW = Date.UTC(2026, 10, 21, 7, 30)

async function ask({
  platform,
  env = {},
}: Pick<PlatformOptions, 'platform'> & { env?: PlatformOptions['env'] }) {
  const opened = openPlatform({
    env,
    ...(platform && { platform }),
    clock: { ...systemClock, now: () => NOW },
  })
  onTestFinished(() => opened.close())
  return asking(opened).ask('/.well-known/security.txt')
}

test('security.txt gives the contacts of the definition in their order, as plain text that is not kept', async () => {
  const response = await ask({
    env: { NEXT_PUBLIC_SITE_URL: 'https://school.example' },
    platform: {
      brand: { language: 'de' },
      security: {
        contact: ['mailto:security@school.example', 'https://school.example/report'],
        encryption: 'https://school.example/key.txt',
        policy: 'https://school.example/policy',
        acknowledgments: 'https://school.example/thanks',
      },
    },
  })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(await response.text()).toBe(`Contact: mailto:security@school.example
Contact: https://school.example/report
Expires: 2027-02-19T00:00:00Z
Encryption: https://school.example/key.txt
Acknowledgments: https://school.example/thanks
Preferred-Languages: de
Canonical: https://school.example/.well-known/security.txt
Policy: https://school.example/policy
`)
})

test('security.txt says what the definition says and no more: no canonical address without https', async () => {
  const response = await ask({
    platform: {
      security: { contact: 'tel:+1-201-555-0123', expires: '2027-12-31T00:00:00Z', languages: ['en', 'fr'] },
    },
  })
  expect(await response.text()).toBe(
    'Contact: tel:+1-201-555-0123\nExpires: 2027-12-31T00:00:00Z\nPreferred-Languages: en, fr\n',
  )
})

test('without a contact in the definition there is no security.txt', async () => {
  const response = await ask({})
  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ code: 'not_found' })
})
