import { readdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Its commands need a PostgreSQL server, and are run by test/e2e/moving-day.test.ts. */
const NEEDS_POSTGRES = 'moving-day.md'

/** The pages whose console blocks are run on a machine of their own. */
export const PAGES: readonly string[] = [
  'README.md',
  'docs/guides/getting-started.md',
  ...readdirSync(path.join(root, 'runbooks'))
    .filter((name) => name.endsWith('.md') && name !== NEEDS_POSTGRES)
    .map((name) => `runbooks/${name}`),
]

/** Bash that prepares the machine for a runbook's commands, by the page's name. */
export const SETUPS: Readonly<Record<string, string>> = {
  'runbooks/kubernetes.md': `cat > production.env <<END
DEPLOY_ENVIRONMENT=production
NEXT_PUBLIC_SITE_URL=https://www.example.com
NEXT_PUBLIC_API_URL=https://api.example.com
NEXT_PUBLIC_AGENT_URL=https://agent.example.com
CORS_ALLOWED_ORIGINS=https://www.example.com
STORE_URL=postgres://platform:kX3vQ8tR2mZ7pL5w@platform-store.postgres.database.azure.com/platform?sslmode=verify-full
EMAIL_DISPATCH_SECRET=$(head -c 32 /dev/urandom | base64)
ALERT_WEBHOOK_URL=https://alerts.example.com/platform
ALERT_WEBHOOK_SECRET=whsec_$(head -c 32 /dev/urandom | base64)
END`,
  'runbooks/heartbeat-late.md': `cat > platform.config.json <<END
{ "heartbeats": { "backup": { "every": "1d", "grace": "2h" } } }
END
echo EMAIL_DISPATCH_SECRET=$(head -c 32 /dev/urandom | base64) > .env`,
  'runbooks/half-configured.md':
    'echo MAILER_API_KEY=re_4f0c1a77d1 > .env; echo MAILER_API_URL=https://api.mail.example.com >> .env',
  'runbooks/moving-lists.md': `platformctl db migrate --data /var/lib/platformctl
cat > subscribed.csv <<END
"Email Address","First Name",OPTIN_TIME,OPTIN_IP,CONFIRM_TIME,CONFIRM_IP,NOTES,TAGS
ada@example.com,"Ada, Countess","2024-03-01 08:59:10",203.0.113.7,"2024-03-01 09:00:12",203.0.113.7,,
grace@example.com,Grace,,,"2024-03-02 10:00:00",198.51.100.4,"a ""quoted"" note",
edsger@example.com,Edsger,"2024-03-03 10:00:00",198.51.100.9,,,,
END
printf '"Email Address","First Name",CLEAN_TIME\\nold@example.com,Old,"2024-05-01 10:00:00"\\n' > cleaned.csv`,
  'runbooks/mail-refused.md': `cat > .env <<END
MAILER_API_KEY=re_4f0c1a77d1
MAILER_SMTP_URL=smtp://127.0.0.1:2525
MAILER_FROM=Kiln <hello@example.com>
END`,
  'runbooks/store-failing.md': '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=due',
  'README.md':
    "echo DATABASE_URL=postgres://shop@localhost/shop > .env.example; echo 'DATABASE_URL=postgres://shop:k#pass@db.example.com/shop' > .env",
  'runbooks/dispatch-stalled.md': '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=due',
  'runbooks/backlog-growing.md': '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=due grace=due',
  'runbooks/unknown-deliveries.md':
    '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=unknown grace=parked edsger=sent',
  'runbooks/bounce-rate.md':
    '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=bounced grace=sent edsger=sent mail=60 alan=returned joan=returned mary=returned && printf "address,cause\\nold@example.com,hard-bounce\\nolder@example.com,hard-bounce\\n" > bounces.csv',
  'runbooks/complaints.md':
    '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite mail=60 ada=complained alan=complained joan=complained mary=complained tony=complained grace=sent edsger=sent',
  'runbooks/stop-all-mail.md': '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=due grace=due',
  'runbooks/privacy.md': '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=sent grace=due',
  'runbooks/store-full.md': '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=due',
  'runbooks/store.md': '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=due grace=sent',
  'runbooks/rotation.md': `printf '%s\\n' TRUST_PROXY=10.0.0.0/8,127.0.0.1 "HEALTH_DEEP_TOKEN=$(openssl rand -hex 32)" > .env`,
  'runbooks/rollback.md': '"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ada=due',
}
