import { definePlatform } from 'platformctl/config'

/** A federation of choirs in English and German. Its site is a Hono program, its API a Fastify program. */
export default definePlatform({
  preset: 'base',
  name: 'Federation of Choirs',
  brand: { color: '#1e5a8a', language: 'en' },
  without: ['payments'],
  services: {
    web: { label: 'Website' },
    api: {
      address: 'API_URL',
      health: '/up',
      format: 'status',
      label: 'Members’ API',
      dependsOn: ['members'],
    },
  },
  groups: {
    api: {
      services: ['web'],
      unlocks: 'the health of the API on the status page',
      absent: 'the API is not probed',
      variables: {
        API_URL: { kind: 'url', example: 'http://127.0.0.1:8081', summary: 'Address of the API.' },
      },
    },
    members: {
      services: ['web'],
      unlocks: 'invoices to member choirs',
      absent: 'the API does not start',
      always: true,
      variables: {
        DATABASE_URL: { kind: 'postgres-url', required: 'production', summary: 'The members’ database.' },
        API_TOKEN: {
          kind: 'secret',
          chosen: true,
          required: true,
          summary: 'What the office sends to the API.',
        },
      },
    },
  },
  probes: {
    members: { service: 'web', postgres: 'DATABASE_URL', label: 'Members’ database', deadline: '2s' },
  },
  mails: './mails',
  templates: {
    invoice: { slots: { number: 'text', amount: 'text', invoiceUrl: 'url' } },
  },
  courses: {
    singing: {
      title: 'Singing together',
      lessons: './courses/singing',
      at: '18:00',
      zone: 'Europe/Vienna',
      on: ['tue'],
      pages: 'link',
    },
  },
})
