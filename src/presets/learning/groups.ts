import type { GroupDefinition } from '../../core/env/definition.ts'
import { baseGroups as base, JOB_STORE_URL, secret, text, url } from '../../core/env/groups.ts'

const address = (example: string, summary: string) => ({ ...url(example, summary), base: true }) as const

const cloudqpu = {
  CLOUDQPU_SUBSCRIPTION_ID: text('00000000-0000-0000-0000-000000000000', 'Subscription of the cloud QPU.'),
  CLOUDQPU_RESOURCE_GROUP: text('quantum', 'Resource group of the cloud QPU.'),
  CLOUDQPU_WORKSPACE: text('quantum-workspace', 'Workspace of the cloud QPU.'),
  CLOUDQPU_LOCATION: text('westeurope', 'Location of the cloud QPU.'),
  CLOUDQPU_TENANT_ID: text('00000000-0000-0000-0000-000000000000', 'Tenant of the cloud QPU.'),
  CLOUDQPU_CLIENT_ID: text('00000000-0000-0000-0000-000000000000', 'Client of the cloud QPU.'),
  CLOUDQPU_CLIENT_SECRET: secret('Secret of that client.'),
}
export const CLOUDQPU = Object.keys(cloudqpu)

const models = {
  services: ['web', 'agent'],
  unlocks: 'live tutor tiers',
  absent: 'offline FAQ tier',
  visitors: 'The live tutor is off: questions are answered from a fixed list.',
  variables: {
    MODEL_A_API_KEY: secret('Key of model provider A.'),
    MODEL_A_MODEL: text('tutor-large', 'Model of provider A.'),
    MODEL_B_API_KEY: secret('Key of model provider B.'),
    MODEL_B_MODEL: text('tutor-medium', 'Model of provider B.'),
    MODEL_C_API_KEY: secret('Key of model provider C.'),
    MODEL_C_MODEL: text('tutor-small', 'Model of provider C.'),
    CLOUDMODEL_API_KEY: secret('Key of the cloud model.'),
    CLOUDMODEL_API_ENDPOINT: url('https://models.example.com', 'Address of the cloud model.'),
    CLOUDMODEL_API_DEPLOYMENT: text('tutor', 'Deployment of the cloud model.'),
    CLOUDMODEL_API_VERSION: text('2026-06-01', 'Version of the cloud model’s API.'),
  },
  rules: [
    {
      id: 'cloudmodel-trio',
      allOrNone: ['CLOUDMODEL_API_KEY', 'CLOUDMODEL_API_ENDPOINT', 'CLOUDMODEL_API_DEPLOYMENT'],
    },
    {
      id: 'cloudmodel-version-without-key',
      requires: ['CLOUDMODEL_API_KEY'],
      when: ['CLOUDMODEL_API_VERSION'],
    },
    { id: 'model-a-without-key', requires: ['MODEL_A_API_KEY'], when: ['MODEL_A_MODEL'] },
    { id: 'model-b-without-key', requires: ['MODEL_B_API_KEY'], when: ['MODEL_B_MODEL'] },
    { id: 'model-c-without-key', requires: ['MODEL_C_API_KEY'], when: ['MODEL_C_MODEL'] },
  ],
} as const satisfies GroupDefinition

const hardware = {
  services: ['api'],
  unlocks: 'real quantum hardware',
  absent: 'devices are listed as unavailable, with the reason',
  visitors: 'Quantum hardware is off: its devices are listed as unavailable.',
  variables: {
    HARDWARE_A_TOKEN: secret('Token of hardware provider A.'),
    HARDWARE_A_INSTANCE: text('hub/group/project', 'Instance at hardware provider A.'),
    CLOUDB_ACCESS_KEY_ID: text('access-key-id', 'Access key of hardware provider B.'),
    CLOUDB_SECRET_ACCESS_KEY: secret('Secret of that access key.'),
    CLOUDB_REGION: text('eu-west-2', 'Region of hardware provider B.'),
    CLOUDB_RESULTS_BUCKET: text('quantum-results', 'Bucket for results of hardware provider B.'),
    ...cloudqpu,
  },
  rules: [
    {
      id: 'hardware-a-pair',
      allOrNone: ['HARDWARE_A_TOKEN', 'HARDWARE_A_INSTANCE'],
      cause: 'Hardware provider A needs its token and its instance together.',
      fix: 'Set both, or neither to list its devices as unavailable.',
    },
    { id: 'cloudb-pair', allOrNone: ['CLOUDB_ACCESS_KEY_ID', 'CLOUDB_SECRET_ACCESS_KEY'] },
    {
      id: 'cloudb-without-credentials',
      requires: ['CLOUDB_ACCESS_KEY_ID', 'CLOUDB_SECRET_ACCESS_KEY'],
      when: ['CLOUDB_REGION', 'CLOUDB_RESULTS_BUCKET'],
    },
    {
      id: 'cloudb-without-region',
      requires: ['CLOUDB_REGION'],
      when: ['CLOUDB_ACCESS_KEY_ID', 'CLOUDB_SECRET_ACCESS_KEY'],
      match: 'all',
      cause: 'Hardware provider B has credentials, but no region.',
      fix: 'Set CLOUDB_REGION.',
    },
    {
      id: 'cloudqpu-all',
      allOrNone: CLOUDQPU,
      cause: 'The cloud QPU needs all seven of its variables together.',
      fix: 'Set the missing ones, or remove the others.',
    },
  ],
} as const satisfies GroupDefinition

const agent = {
  services: ['agent'],
  unlocks: 'your own course index',
  absent: 'the bundled index',
  variables: {
    COURSE_INDEX_PATH: { kind: 'path', example: './course-index.json', summary: 'Your own course index.' },
  },
} as const satisfies GroupDefinition

const { NEXT_PUBLIC_SITE_URL, ...othersOfSite } = base.site.variables

const site = {
  ...base.site,
  variables: {
    // Kept next to the related variables rather than at the end: the docs list variables in this order.
    NEXT_PUBLIC_SITE_URL,
    NEXT_PUBLIC_API_URL: address('https://api.example.com', 'Address of the API as browsers reach it.'),
    NEXT_PUBLIC_AGENT_URL: address('https://agent.example.com', 'Address of the agent as browsers reach it.'),
    API_URL: {
      ...address('http://api.internal:8000', 'Address of the API as the other services reach it.'),
      services: ['web', 'agent'],
    },
    AGENT_URL: address('http://agent.internal:8100', 'Address of the agent as the web service reaches it.'),
    ...othersOfSite,
  },
} as const satisfies GroupDefinition

const store = {
  ...base.store,
  variables: { ...base.store.variables, JOB_STORE_URL: { ...JOB_STORE_URL, services: ['api'] } },
} as const satisfies GroupDefinition

const datastore = {
  ...base.datastore,
  unlocks: 'accounts, cloud-saved circuits, organisations, exams, quotas',
  absent: 'everything stays in browser local storage',
  visitors: 'Accounts are off: your work stays in this browser.',
} as const satisfies GroupDefinition

const mail = {
  ...base.mail,
  unlocks: 'transactional mail, the seven-day course',
  variables: {
    ...base.mail.variables,
    MAILER_FROM: { ...base.mail.variables.MAILER_FROM, example: 'Quantum Course <course@example.com>' },
  },
} as const satisfies GroupDefinition

/** The default platform's groups, in the order in which they are shown. */
export const learningGroups = {
  site,
  store,
  datastore,
  payments: base.payments,
  models,
  hardware,
  sharedstore: { ...base.sharedstore, services: ['web', 'api'] },
  mail,
  errortrack: base.errortrack,
  analytics: base.analytics,
  health: base.health,
  agent,
  limits: { ...base.limits, services: ['web', 'api'] },
  identity: base.identity,
  budgets: base.budgets,
  mailer: base.mailer,
  feedback: base.feedback,
  dkim: base.dkim,
  alerts: base.alerts,
  heartbeats: base.heartbeats,
} as const satisfies Readonly<Record<string, GroupDefinition>>
