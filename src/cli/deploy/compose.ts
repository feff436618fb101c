import { shellWord } from '../../core/daemon-record.ts'
import { type DeployFile, type Places, type Subject, WITNESS, yamlName } from './subject.ts'

const POSTGRES = `  postgres:
    image: postgres:18@sha256:3a82e1f56c8f0f5616a11103ac3d47e632c3938698946a7ad26da0df1334744a
    volumes:
      - postgres:/var/lib/postgresql
    environment:
      POSTGRES_DB: platform
      POSTGRES_PASSWORD: \${POSTGRES_PASSWORD:-}
      POSTGRES_USER: platform
    restart: unless-stopped
    healthcheck:
      test: [ "CMD", "pg_isready", "--username", "platform" ]
      interval: 10s
      timeout: 5s
      retries: 5
    profiles:
      - postgres
`

/** What every container of ours has. */
const SERVICE = `x-service: &service
  restart: unless-stopped
  volumes:
    - data:/data
  tmpfs:
    - /tmp
  read_only: true
  security_opt:
    - no-new-privileges:true
  cap_drop:
    - ALL
  stop_grace_period: 120s
  mem_limit: 512m
  logging:
    driver: json-file
    options:
      max-size: 10m
      max-file: "5"

`

const linesOf = (names: readonly string[], line: (name: string) => string) =>
  names.toSorted().map(line).join('')

function settingsOf(addresses: Subject['services'][number]['addresses']): string {
  const lines = addresses.map(([variable, address]) => `      ${yamlName(variable)}: ${address}\n`).sort()
  return lines.length === 0 ? '' : `    environment:\n${lines.join('')}`
}

/** The services on one machine, after a container that migrates the store; web runs the schedule. */
export function composeFiles({ name, services }: Subject, { folder, up }: Places): readonly DeployFile[] {
  const file = (one: string) => shellWord(folder + one)
  // A `$` begins a variable there.
  const yamlPath = (one: string) => yamlName(one).replaceAll('$', '$$$$')
  const image = (role: string) => `    image: ${name}-${role}:\${BUILD_STAMP:-local}
    build:
      context: ${yamlPath(up || '.')}
      dockerfile: ${yamlPath(`${folder}Dockerfile`)}
      target: ${yamlName(role)}
      args:
        BUILD_STAMP: \${BUILD_STAMP:-}
`
  const envFiles = (role: string) => `    env_file:
      - path: .env
        required: false
      - path: ${role}.env
        required: false
`
  const own = services.map(({ name: role, port, addresses }) => ({
    role,
    text: `  ${yamlName(role)}:
${image(role)}    depends_on:
      migrate:
        condition: service_completed_successfully
${settingsOf(addresses)}${envFiles(role)}    ports:
      - '127.0.0.1:${port}:${port}'
    <<: *service
`,
  }))
  const migrate = `  migrate:
${image('web')}    depends_on:
      postgres:
        condition: service_healthy
        required: false
${envFiles('web')}    command: [ "db", "migrate", "--data", "/data" ]
    restart: "no"
    <<: *service
`
  const all = [...own, { role: 'migrate', text: migrate }, { role: 'postgres', text: POSTGRES }].sort(
    (a, b) => (a.role < b.role ? -1 : 1),
  )
  const compose = `# The services on one machine, behind a proxy that ends TLS:
#   docker compose -f ${file('compose.yaml')} up --detach --wait
# Beside this file: settings of all services in .env, secrets of one service in ${services.map(({ name: role }) => `${role}.env`).join(', ')}. Each is optional,
# because an empty environment is a valid one. platformctl env list says which service reads what.
# With PostgreSQL instead of an SQLite file (of a platform in use: platformctl runbook moving-day): set POSTGRES_PASSWORD
# and STORE_URL in .env, then
#   docker compose -f ${file('compose.yaml')} --profile postgres up --detach --wait

${SERVICE}name: ${yamlName(name)}

services:
${all.map(({ text }) => text).join('\n')}
volumes:
  data:
  postgres:
`
  const names = [...new Set(services.flatMap(({ secrets }) => secrets))].sort()
  const secrets = `# Secrets as files instead of variables, each mounted into the services that read it and into no other:
#   docker compose -f ${file('compose.yaml')} -f ${file('compose.secrets.yaml')} up --detach --wait
# Each file is in secrets, beside this file, is named like its variable and holds its value:
#   openssl rand -base64 32 > ${file('secrets/EMAIL_DISPATCH_SECRET')}
# User 1000 must be able to read it. Remove what you do not set. Any other secret works the same: one entry below, and
# NAME_FILE for its service.

name: ${yamlName(name)}

services:
${services
  .filter((service) => service.secrets.length > 0)
  .sort((a, b) => (a.name < b.name ? -1 : 1))
  .map(
    ({ name: role, secrets: read }) => `  ${yamlName(role)}:
    secrets:
${linesOf(read, (one) => `      - ${yamlName(one)}\n`)}    environment:
${linesOf(read, (one) => `      ${one}_FILE: /run/secrets/${one}\n`)}`,
  )
  .join('\n')}
secrets:
${names.map((one) => `  ${yamlName(one)}:\n    file: secrets/${one}\n`).join('')}`
  const words = [...WITNESS.words, '--host', '0.0.0.0', '--data', '/data']
  const witness = `# A witness, on another machine than the platform (docs/guides/witness.md), with the image of web:
#   openssl rand -base64 32 > ${file('secrets/WITNESS_SECRET')}
#   docker compose -f ${file('compose.witness.yaml')} up --detach --wait
# User 1000 must be able to read the secret; the platform lists it as NAME:SECRET. witness.env, beside this file, holds the
# variables of an alert channel. Replace the address and the name; add --peer and the address of each other witness.

${SERVICE}name: ${name}-witness

services:
  witness:
    image: ${name}-web:\${BUILD_STAMP:-local}
    secrets:
      - WITNESS_SECRET
    environment:
      WITNESS_SECRET_FILE: /run/secrets/WITNESS_SECRET
    env_file:
      - path: witness.env
        required: false
    ports:
      - '127.0.0.1:${WITNESS.port}:${WITNESS.port}'
    command: [ ${words.map((word) => JSON.stringify(word)).join(', ')} ]
    # Healthy while it answers, also when the platform does not.
    healthcheck:
      test: [ "CMD", "node", "-e", "require('http').get('http://127.0.0.1:${WITNESS.port}/health', (r) => process.exit(r.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))" ]
      interval: 30s
      timeout: 6s
      retries: 3
    <<: *service
    mem_limit: 256m

volumes:
  data:

secrets:
  WITNESS_SECRET:
    file: secrets/WITNESS_SECRET
`
  return [
    { path: 'compose.yaml', text: compose },
    { path: 'compose.secrets.yaml', text: secrets },
    { path: 'compose.witness.yaml', text: witness, optional: true },
  ]
}
