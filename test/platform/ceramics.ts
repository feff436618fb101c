import type { PresetParts } from '../../src/platform/check/names.ts'
import { spoiled as spoiledDocument } from '../support/spoiled.ts'

/** A small preset, so that a test of the checks knows every name in it. */
export const PRESETS: Readonly<Record<string, PresetParts>> = {
  base: {
    groups: {
      site: {
        services: 'all',
        unlocks: 'absolute links',
        absent: 'localhost addresses',
        variables: { NEXT_PUBLIC_SITE_URL: { kind: 'url' } },
      },
      store: {
        services: 'all',
        unlocks: 'a store',
        absent: 'a file',
        variables: { STORE_URL: { kind: 'store-url', secret: true } },
      },
      analytics: {
        services: ['web'],
        unlocks: 'aggregate analytics',
        absent: 'events stay on the device',
        variables: { ANALYTICS_DATASTORE_TABLE: { kind: 'table' } },
        rules: [
          { id: 'analytics-without-store', requires: ['STORE_URL'], when: ['ANALYTICS_DATASTORE_TABLE'] },
        ],
      },
    },
    services: [{ name: 'web', health: '/api/health', port: 3000 }],
    probes: [{ service: 'web', name: 'store' }],
    events: [{ name: 'page.viewed' }],
    courses: [{ id: 'intro' }],
  },
  learning: {
    groups: {},
    services: [{ name: 'web', health: '/api/health' }],
    probes: [],
    events: [],
    courses: [],
  },
}

/** The ceramics school of CONTRACT §10, as a plain object: each call gives a new one that a test may spoil. */
export function ceramics() {
  return {
    preset: 'base',
    name: 'Kiln School',
    brand: { color: '#9a3412', logo: './logo.png', language: 'de' },
    services: { web: {}, bookings: { address: 'BOOKINGS_URL', health: '/healthz', format: 'status' } },
    groups: {
      kiln: {
        services: ['web'],
        unlocks: 'kiln bookings',
        absent: 'bookings are shown as unavailable',
        variables: {
          KILN_API_KEY: { kind: 'secret' },
          KILN_API_SECRET: { kind: 'secret' },
          KILN_REGION: { kind: 'enum', of: ['eu', 'us'], default: 'eu' },
        },
        rules: [{ allOrNone: ['KILN_API_KEY', 'KILN_API_SECRET'] }],
      },
      bookings: {
        services: ['web'],
        unlocks: 'the booking calendar',
        absent: 'the calendar is hidden',
        variables: { BOOKINGS_URL: { kind: 'url', example: 'http://bookings.internal:4000' } },
      },
    },
    probes: { kiln: { service: 'web', group: 'kiln', http: 'https://api.kiln.example/ping' } },
    mails: './mails',
    courses: { 'first-firing': { lessons: './courses/first-firing', every: '2d' } },
    events: { 'kiln.booked': { kiln: 'string', cones: 'number' } },
  }
}

/** The ceramics definition with something put at a path; `undefined` removes it. */
export const spoiled = (path: string, value: unknown) => spoiledDocument(ceramics(), path, value)
