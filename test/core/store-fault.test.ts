import { expect, test } from 'vitest'
import { storeFault, storeFaultReason } from '../../src/core/errors.ts'
import { SilentServerError } from '../../src/core/store/postgres/faults.ts'

const coded = (code: string, cause?: unknown) => Object.assign(new Error('canary', { cause }), { code })

test.each([
  ['SQLITE_FULL', 'its disk is full'],
  ['SQLITE_IOERR_SHMSIZE', 'its disk is full'],
  ['SQLITE_CORRUPT_INDEX', 'a page of its file is damaged'],
  ['SQLITE_IOERR_READ', 'its disk reports errors'],
  ['SQLITE_BUSY_SNAPSHOT', 'another process holds its lock'],
  ['53100', 'its disk is full'],
  ['XX001', 'a page of its file is damaged'],
  ['SQLITE_READONLY_DBMOVED', 'its file cannot be written'],
  ['25006', 'its server accepts no writes: it is a replica, or was set to read-only'],
  ['ECONNREFUSED', 'its server cannot be reached'],
  ['08006', 'its server cannot be reached'],
  ['53300', 'its server has no connection left'],
  ['28P01', 'its server refused the user or the password'],
  ['42501', 'its server does not let this user use its tables: they belong to another'],
  ['something_else', 'cannot be opened, written or read'],
])('the error %s says of a store: %s', (code, reason) => {
  expect(storeFaultReason(coded(code))).toBe(reason)
})

test('the cause behind an answer for visitors is what counts', () => {
  expect(storeFault(coded('store_unavailable', coded('SQLITE_FULL')))).toBe('disk_full')
  expect(storeFault(new SilentServerError('no answer'))).toBe('not_reached')
  expect(storeFault('no error at all')).toBe('unknown')
})
