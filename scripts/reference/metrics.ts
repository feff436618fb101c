import { ROWS } from '../../src/daemon/metrics/catalog.ts'

/** docs/reference/metrics.md: made from the catalog. */
export function metricsReference(): string {
  const told = new Set<string>()
  const rows = Object.entries(ROWS).map(([name, { type, help, labels = {}, personal = false }]) => {
    const values = Object.entries(labels).map(([label, of]) => {
      const text = typeof of === 'string' ? of : of.map((value) => `\`${value}\``).join(', ')
      if (text === 'as above' || told.has(`${label} ${text}`)) return `\`${label}\``
      told.add(`${label} ${text}`)
      return `\`${label}\`: ${text}`
    })
    return `| \`${name}\` | ${type} | ${personal ? '**Token.** ' : ''}${help} | ${values.join('<br>')} |`
  })
  return `# Metrics

<!-- Made by \`npm run make\`. -->

\`GET /metrics\` of each service answers in the text format of Prometheus, with 200 whatever is failing. The services of one process share their metrics, so scrape each process once.

Metrics marked **Token**, and the request counts of \`/api/email\` and below, could reveal what one person did on a small platform. They need the HEALTH_DEEP_TOKEN; if none is set, only the machine itself gets them, not through a proxy. All others (states, requests, memory) are public. To close them too, refuse the path in your proxy (nginx: \`location = /metrics { return 404; }\`), and scrape the port. No series names a host, an address or a person. Every label has a closed set of values, explained where it first appears.

\`\`\`yaml
scrape_configs:
  - job_name: platformctl
    authorization: { credentials_file: /etc/prometheus/health-token }
    static_configs:
      - targets: ['127.0.0.1:3000'] # and each service that runs in a process of its own
\`\`\`

There are [rules for alerts](../../runbooks/alerts.yaml), [a Grafana dashboard](../../runbooks/dashboard.json) and [what to do](../../runbooks/alerts.md).

| Metric | Type | Meaning | Labels |
|---|---|---|---|
${rows.join('\n')}
`
}
