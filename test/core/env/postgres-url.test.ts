import { expect, test } from 'vitest'
import { postgresLocation, postgresServers } from '../../../src/core/env/values.ts'

test('an address may name several servers, each with its port, and each gets the rest of the address', () => {
  expect(postgresServers('postgres://u:p@a.example:5433,[::1]:5434,c/db?sslmode=require')).toEqual([
    'postgres://u:p@a.example:5433/db?sslmode=require',
    'postgres://u:p@[::1]:5434/db?sslmode=require',
    'postgres://u:p@c/db?sslmode=require',
  ])
  expect(postgresLocation('postgresql://u:canary@a,b:1/db?sslmode=require')).toBe('a:5432,b:1/db')
})

test.each([
  'postgress://a/db',
  'postgres://u@/db',
  'postgres://a,,b/db',
  'postgres://a:1,b:x/db',
  'postgres://u:p#w@a/db',
  'postgres://a b/db',
  'postgres://a/db?target_session_attrs=standby',
  // No driver reads these.
  'postgres://a/b%',
  'postgres://a/b%4',
  'mysql://a/db',
  '',
])('%j is refused', (value) => {
  expect(postgresServers(value)).toBeUndefined()
})
