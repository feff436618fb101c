import { definePlatform } from 'platformctl/config'

/** A school for ceramics: its website is served by platformctl, its bookings by a Spring program. */
export default definePlatform({
  preset: 'base',
  name: 'Töpferschule Lehmgrube',
  brand: { color: '#9a3412', logo: './logo.svg', language: 'de' },
  without: ['payments'],
  services: {
    web: { label: 'Website' },
    bookings: { address: 'BOOKINGS_URL', format: 'spring', label: 'Buchungen' },
  },
  groups: {
    kiln: {
      services: ['web'],
      unlocks: 'Brenntermine aus der Ofensteuerung',
      absent: 'Brenntermine werden von Hand eingetragen',
      variables: {
        KILN_API_KEY: { kind: 'secret', summary: 'Schlüssel der Ofensteuerung' },
        KILN_API_SECRET: { kind: 'secret', summary: 'Geheimnis zum Schlüssel' },
        KILN_REGION: { kind: 'enum', of: ['eu', 'us'], default: 'eu', summary: 'Wo die Ofensteuerung läuft' },
        KILN_WEBHOOK_URL: {
          kind: 'url',
          example: 'https://lehmgrube.example/ofen',
          summary: 'Wohin sie Brände meldet',
        },
      },
      rules: [
        { allOrNone: ['KILN_API_KEY', 'KILN_API_SECRET'] },
        { requires: ['KILN_API_KEY'], when: ['KILN_WEBHOOK_URL'] },
      ],
    },
    bookings: {
      services: ['web'],
      unlocks: 'den Kurskalender',
      absent: 'der Kurskalender ist ausgeblendet',
      variables: {
        BOOKINGS_URL: {
          kind: 'url',
          example: 'http://bookings.internal:8080',
          summary: 'Adresse der Buchungen',
        },
      },
    },
    glaze: {
      services: ['web'],
      unlocks: 'den Bestand an Glasuren',
      absent: 'der Bestand wird nicht angezeigt',
      variables: {
        GLAZE_STOCK: { kind: 'integer', range: [0, 10_000], example: '40', summary: 'Eimer Glasur im Lager' },
      },
    },
  },
  probes: {
    kiln: {
      service: 'web',
      group: 'kiln',
      http: 'KILN_WEBHOOK_URL',
      label: 'Ofensteuerung',
      deadline: '2s',
    },
    glaze: {
      service: 'web',
      group: 'glaze',
      label: 'Glasuren',
      optional: true,
      check: ({ value }) =>
        Number(value('GLAZE_STOCK')) < 5
          ? { state: 'degraded', reason: 'weniger als fünf Eimer Glasur' }
          : { state: 'ok' },
    },
  },
  mails: './mails',
  templates: {
    'booking-confirmed': {
      slots: { kiln: 'text', day: 'text', bookingUrl: 'url' },
      by: 'person',
      inputs: ['bookingId'],
      // The booking comes from the school's own records, never from the request.
      resolve: ({ bookingId }, { asker, absolute }) =>
        asker.kind === 'person' && bookingId === '17'
          ? {
              to: asker.email,
              slots: { kiln: 'Großer Gasofen', day: '3. Mai', bookingUrl: absolute('/termine/17') },
              about: `booking.${bookingId}`,
            }
          : undefined,
    },
  },
  courses: {
    'erster-brand': { title: 'Der erste Brand', lessons: './courses/erster-brand', every: '2d' },
  },
  events: {
    'kiln.booked': { kiln: 'string', cones: 'number' },
    'glaze.rated': { glaze: 'string', stars: 'number' },
  },
  insights: {
    labels: { 'kiln.booked': 'Gebuchte Brände', 'glaze.rated': 'Bewertete Glasuren' },
    sections: [
      {
        id: 'firings',
        heading: 'Brände',
        caption: 'Gebuchte Brände je Ofen',
        empty: 'Kein Brand in diesem Zeitraum.',
        by: ['kiln'],
        rowHead: 'Ofen',
        columns: [
          { head: 'Gebucht', kind: 'kiln.booked', compute: 'count' },
          { head: 'Höchster Kegel', kind: 'kiln.booked', compute: 'max', property: 'cones' },
        ],
        bars: true,
        tile: { label: 'genutzte Öfen', column: 'Gebucht' },
      },
    ],
  },
})
