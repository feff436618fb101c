import { expect, test } from 'vitest'
import { stale } from '../../scripts/make.ts'

test('what is published is what the code makes: references, schemas, rules of alerts, deploy files, compiled mails', async () => {
  expect(await stale()).toEqual([])
}, 60_000)
