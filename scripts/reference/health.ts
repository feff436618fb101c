import { LARGEST_REPORT_BYTES } from '../../src/core/health/remote-report.ts'
import { CAUSES } from '../../src/core/network/causes.ts'
import { type ServiceDefinition, WEB } from '../../src/core/service.ts'
import { SHOWN } from './platform.ts'

const WEB_SUMMARY =
  'configuration; with `?deep=1` also whether the data store, payments, other services, mail and the store can be reached'

function listed(ports: readonly number[]): string {
  return ports.length < 2 ? ports.join('') : `${ports.slice(0, -1).join(', ')} and ${ports.at(-1)}`
}

/** docs/reference/health.md: made from the table of causes, with what a reader of the answers needs beside it. */
export function healthReference(services: readonly ServiceDefinition[]): string {
  const endpoints = services.map(
    ({ name, health, summary = '' }) =>
      `| ${name} | \`GET ${health}\` | ${name === WEB ? WEB_SUMMARY : summary} |`,
  )
  const addresses = services.map(({ address = [] }) => address.join(' or ')).filter(Boolean)
  const ports = services.flatMap(({ port }) => port ?? [])
  const causes = Object.entries(CAUSES).map(
    ([code, { meaning, fix }]) =>
      `| \`${code}\` | ${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}. | ${fix} |`,
  )
  return `# Health

<!-- Made by \`npm run make\`. -->

${SHOWN} \`platformctl health --deep\` shows yours.

## Endpoints

| Service | Endpoint | What it looks at |
|---|---|---|
${endpoints.join('\n')}

If HEALTH_DEEP_TOKEN is set, \`?deep=1\` needs it as \`Authorization: Bearer\`; otherwise the answer is 401. The plain endpoint, the status page and metrics about no person stay public: [how to hide them](../guides/faq.md#operation). Give a load balancer the plain endpoint, and a monitor the deep one.

| State | HTTP | Means |
|---|---|---|
| \`ok\` | 200 | Everything that is configured works. |
| \`degraded\` | 200 | It serves with limits, such as on a fallback, paused or half-configured. |
| \`failing\` | 503 | Something that is configured does not work. |
| \`skipped\` | – | Of a probe only: not configured. Counts as ok, and is never red. |

A service is the worst of its probes. Probes run at once; one that hangs is reported and stops no other. No answer is older than its request: requests during a run share the next run. \`checked: false\`: nothing live was tried. A client that accepts \`application/health+json\` gets that format (\`pass\`, \`warn\`, \`fail\`) with the same facts. No answer names a host, an address or a credential. Each change of a service’s state is one log line, \`health_changed\`, with the probes to blame.

## platformctl health

Addresses come from \`--url\`, else \`--env-file\` (${addresses.join('; ')}; the process environment wins), else this machine: 127.0.0.1 on ports ${listed(ports)}. Redirects are not followed, answers are read to ${LARGEST_REPORT_BYTES / 1024} KB, and the token goes to web alone, as \`Authorization\`.

HTTP_PROXY, HTTPS_PROXY and NO_PROXY hold for all outgoing HTTP requests, also of \`preflight --deep\`, which leaves names to the proxy. This machine is always asked directly.

[Options and exit codes](commands.md#platformctl-health).

| Format | Is |
|---|---|
| \`text\` | for a person |
| \`json\` | one document, \`version\` 1: \`passed\`, \`outcome\` (\`passed\`, \`failed\`, \`unreached\`), \`sentence\`, \`time\`, \`services\` (each with \`state\`, \`because\`, \`phases\` in milliseconds, \`certificate\`, and \`report\` or \`cause\`, \`reason\`, \`fix\`), \`rootCauses\`, \`builds\`, \`skew\`, \`warnings\`; with \`--watch\` one line a round; [its schema](schemas/health.schema.json) |
| \`junit\` | a suite each service, a case for reaching it and one for each probe; and one case for the verdict, which also fails for another build, \`--strict\` or too few passes in a row |
| \`prom\` | gauges \`platformctl_remote_…\` for a textfile collector |

A service that fails only because of another says so (\`because api\`); the other is named once, as root cause. Different builds and a certificate with less than 14 days left are warnings; with \`--strict\` they fail.

## Cause codes

Why a service could not be asked. \`platformctl health explain CODE\` says the same.

| Code | What it means | What to do |
|---|---|---|
${causes.join('\n')}
`
}
