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

\`GET /metrics\` of each service, in the text format of Prometheus, answers 200 whatever is failing. Scrape each process once: the services of one process share their metrics, and services that run apart have their own. Metrics marked **Token** could reveal on a small platform what one person did, and so could the counts for \`/api/email\` and below. A scrape gets them only with the HEALTH_DEEP_TOKEN. If you set no token, it gets them from the machine itself, not through a proxy. No series names a host, an address or a person, and every label has a closed set of values, explained where it first appears.

\`\`\`yaml
scrape_configs:
  - job_name: platformctl
    authorization: { credentials_file: /etc/prometheus/health-token }
    static_configs:
      - targets: ['127.0.0.1:3000'] # and each service that runs in a process of its own
\`\`\`

Rules for alerts are in [runbooks/alerts.yaml](../../runbooks/alerts.yaml), a dashboard for Grafana in [runbooks/dashboard.json](../../runbooks/dashboard.json), and [alerts](../../runbooks/alerts.md) says what to do.

| Metric | Type | Meaning | Labels |
|---|---|---|---|
${rows.join('\n')}
`
}
