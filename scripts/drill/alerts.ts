import { DATA, ENV, type Fault, START, STOP, seed } from './machine.ts'

/** A program that holds a file's lock for as long as its input is open; the run ends that by `api.pid`. */
const OTHER_PROGRAM = (file: string) => `mkfifo fifo
sqlite3 /var/lib/platformctl/${file} < fifo > other.log 2>&1 &
echo $! > other.pid
(echo 'PRAGMA busy_timeout = 5000; BEGIN EXCLUSIVE;'; exec sleep 80) > fifo &
echo $! > api.pid
sleep 1`
const certificate = (days: number) =>
  `openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days ${days} -subj /CN=localhost -addext subjectAltName=DNS:localhost 2> /dev/null`
const SITE = `node -e "require('node:https').createServer({key:require('fs').readFileSync('k.pem'),cert:require('fs').readFileSync('c.pem')},(q,s)=>s.end('{}')).listen(4430)" > /dev/null 2>&1 & echo $! > pid; sleep 0.5`
const MAIL =
  'MAILER_API_KEY=kX3vQ8tR2mZ7pL5w\\nMAILER_FROM=course@example.com\\nMAILER_SMTP_URL=smtp://127.0.0.1:2525\\nNEXT_PUBLIC_SITE_URL=http://localhost:3000\\n'
const SMTP = `node -e "const { SMTPServer } = require('smtp-server'); new SMTPServer({ authOptional: true, disabledCommands: ['STARTTLS'], onAuth: (a, s, done) => done(null, { user: 1 }), onData: (s, _, done) => s.on('end', done).resume() }).listen(2525, '127.0.0.1')" > smtp.log 2>&1 &
echo $! > pid
sleep 1`

/** A mail provider that signs with the secret of `provider.env`, as Standard Webhooks does, and prints the answer. */
const PROVIDER = `printf 'MAILER_FEEDBACK_PROVIDER=standard\nMAILER_FEEDBACK_SECRET=whsec_%s\n' $(printf 'the-secret-of-the-mail-provider!' | base64) > provider.env
cat > provider <<'END'
#!/bin/sh
at=$(date +%s)
body='{"type":"delivered","timestamp":"2026-11-22T02:00:00Z","data":{"address":"ada@example.com","messageId":"c1@example.com"}}'
signature=$(printf 'm%s.%s.%s' $at $at "$body" | openssl dgst -sha256 -hmac 'the-secret-of-the-mail-provider!' -binary | base64)
curl -s -o answer -w '%{http_code}\n' -H 'content-type: application/json' -H "webhook-id: m$at" -H "webhook-timestamp: $at" -H "webhook-signature: v1,$signature" -d "$body" http://127.0.0.1:3000/api/email/feedback/standard
END
chmod +x provider`

/** The faults of the alerts that no other fault makes fire. */
export const ALERT_FAULTS: readonly Fault[] = [
  {
    name: 'the process hangs',
    alerts: ['PlatformHealthNotLooked', 'PlatformDown'],
    page: 'alerts.md#platformhealthnotlooked',
    make: `${START}/srv/platform/start --no-schedule
kill -STOP $(cat pid)`,
    look: [{ command: 'platformctl health', says: /no answer|did not answer|in time/ }],
    fix: [{ command: 'kill -9 $(cat pid)' }, { command: '/srv/platform/start --no-schedule' }],
    closed: { command: 'platformctl health', says: /ok/ },
  },
  {
    name: 'the metrics are scraped without the health token',
    alerts: ['PlatformMetricsMissing'],
    page: 'alerts.md#platformmetricsmissing',
    make: `${START}echo HEALTH_DEEP_TOKEN=kX3vQ8tR2mZ7pL5wkX3vQ8tR > .env
/srv/platform/start --no-schedule`,
    look: [
      {
        command: 'curl -s http://127.0.0.1:3000/metrics | grep -c deliveries_total || true',
        says: /^0$/m,
      },
    ],
    fix: [{ command: 'sed -n s/HEALTH_DEEP_TOKEN=//p .env > health-token' }],
    closed: {
      command:
        'curl -s -H "Authorization: Bearer $(cat health-token)" http://127.0.0.1:3000/metrics | grep deliveries_total',
      says: /deliveries_total\{outcome="sent"\} 0/,
    },
  },
  {
    name: 'another program holds the file of the history',
    alerts: ['PlatformHistoryNotRecorded'],
    page: 'alerts.md#platformhistorynotrecorded',
    make: `${START}/srv/platform/start --no-schedule
${STOP}
${OTHER_PROGRAM('history.sqlite')}
/srv/platform/start --no-schedule
sleep 3`,
    look: [{ command: 'grep -o history_not_recorded log', says: /history_not_recorded/ }],
    fix: [
      { command: 'kill $(cat other.pid)' },
      { command: STOP },
      { command: '/srv/platform/start --no-schedule; sleep 2' },
    ],
    closed: { command: 'grep -c history_not_recorded log', says: /^1$/m },
  },
  {
    name: 'the disk of the store is full',
    alerts: ['PlatformStoreDown'],
    page: 'store-full.md',
    make: `mount -t tmpfs -o size=3m tmpfs /var/lib/platformctl
${START}/srv/platform/start --no-schedule
dd if=/dev/zero of=/var/lib/platformctl/filler bs=4096
sleep 7`,
    look: [{ command: 'platformctl health --deep', says: /its disk is full/ }],
    fix: [{ command: 'rm /var/lib/platformctl/filler; sleep 7' }],
    closed: { command: 'platformctl health --deep', says: /all 3 services are ok|degraded/ },
  },
  {
    name: 'another program holds the lock of the store',
    alerts: ['PlatformErrors', 'PlatformSlow', 'PlatformEventLoopBlocked', 'PlatformStoreDown'],
    page: 'alerts.md#platformerrors',
    make: `${START}printf '${MAIL}' > .env
/srv/platform/start --no-schedule
${OTHER_PROGRAM('platform.sqlite')}
curl -s -X POST -H 'content-type: application/json' -d '{"email":"ada@example.com"}' http://127.0.0.1:3000/api/email/subscribe
sleep 7`,
    look: [
      { command: 'curl -s http://127.0.0.1:3000/metrics', says: /requests_total\{[^}]*status="503"/ },
      { command: 'platformctl health --deep', says: /another process holds its lock/ },
    ],
    fix: [{ command: 'kill $(cat other.pid); sleep 7' }],
    closed: { command: 'platformctl health --deep', says: /store +ok/ },
  },
  {
    name: 'the mail provider signs its webhooks with another secret',
    alerts: ['PlatformFeedbackRefused'],
    page: 'alerts.md#platformfeedbackrefused',
    make: `${START}${PROVIDER}
printf 'MAILER_FEEDBACK_PROVIDER=standard\nMAILER_FEEDBACK_SECRET=whsec_%s\n' $(printf another-secret-of-32-bytes-or-so | base64) > .env
/srv/platform/start --no-schedule
for n in 1 2 3; do ./provider; done`,
    look: [
      { command: 'curl -s http://127.0.0.1:3000/metrics', says: /webhooks_total\{result="refused"\} 3/ },
      { command: 'grep feedback_refused log', says: /signature/ },
    ],
    fix: [
      { command: 'cp provider.env .env' },
      { command: STOP },
      { command: '/srv/platform/start --no-schedule' },
    ],
    closed: { command: './provider', says: /^200$/m },
  },
  {
    name: 'the payments provider signs its webhooks with another secret',
    alerts: ['PlatformCallsRefused'],
    page: 'alerts.md#platformcallsrefused',
    make: `${START}printf 'PAYMENTS_SECRET_KEY=sk_test_4eC39HqLyjWDarjtT1zdp7dc\nPAYMENTS_WEBHOOK_SECRET=whsec_another-secret-of-32-bytes\nPAYMENTS_PRICE_PRO_MONTHLY=price_1PaymentsProMonthly\n' > .env
cat > provider <<'END'
#!/bin/sh
at=$(date +%s)
body='{"id":"evt_1","type":"checkout.session.completed","created":1795248000,"data":{"object":{}}}'
signature=$(printf '%s.%s' $at "$body" | openssl dgst -sha256 -hmac whsec_the-secret-of-the-provider | sed 's/.* //')
curl -s -o answer -w '%{http_code}\n' -H 'content-type: application/json' -H "stripe-signature: t=$at,v1=$signature" -d "$body" http://127.0.0.1:3000/api/payments/webhook
END
chmod +x provider
/srv/platform/start --no-schedule
for n in 1 2 3; do ./provider; done`,
    look: [
      {
        command: 'curl -s http://127.0.0.1:3000/metrics',
        says: /requests_total\{[^}]*payments\/webhook[^}]*status="400"\} 3/,
      },
    ],
    fix: [
      { command: 'sed -i s/whsec_.*/whsec_the-secret-of-the-provider/ .env' },
      { command: STOP },
      { command: '/srv/platform/start --no-schedule' },
    ],
    closed: { command: './provider', says: /^200$/m },
  },
  {
    name: 'the shared store of the limits does not answer',
    alerts: ['PlatformLimiterFallback', 'PlatformProbeDegraded'],
    page: 'limiter-degraded.md',
    make: `${START}printf 'SHAREDSTORE_REST_URL=http://127.0.0.1:1\nSHAREDSTORE_REST_TOKEN=kX3vQ8tR2mZ7pL5w\n' > .env
/srv/platform/start --no-schedule`,
    look: [
      { command: 'platformctl health --deep', says: /sharedstore/ },
      { command: `platformctl preflight --deep ${ENV}`, says: /SHAREDSTORE_REST_URL[\s\S]*refused/ },
    ],
    fix: [{ command: `echo > .env; ${STOP}` }, { command: '/srv/platform/start --no-schedule' }],
    closed: {
      command: 'curl -s http://127.0.0.1:3000/metrics',
      says: /limiter_counting\{where="fallback"\} 0/,
    },
  },
  {
    name: 'more lessons are due than go out',
    alerts: ['PlatformBacklogGrowing'],
    page: 'backlog-growing.md',
    make: `${seed('ada=due grace=due')}
${SMTP}
printf '${MAIL}EMAIL_DISPATCH_LIMIT=1\n' > .env`,
    look: [
      { command: `platformctl course status ${DATA}`, says: /due now +2/ },
      {
        command: `platformctl dispatch --local --dry-run --limit 1 ${DATA}`,
        says: /2 due, the first 1 shown/,
      },
    ],
    fix: [
      { command: `platformctl dispatch --local --drain --limit 1000 ${ENV} ${DATA}`, says: /0 still due/ },
    ],
    closed: { command: `platformctl course status ${DATA}`, says: /due now +0/ },
  },
  {
    name: 'a certificate ends within days',
    alerts: ['PlatformCertificateExpiring'],
    page: 'certificate-expiring.md',
    make: `${certificate(5)}
${SITE}
echo NEXT_PUBLIC_SITE_URL=https://localhost:4430 > .env`,
    look: [
      {
        command: `NODE_EXTRA_CA_CERTS=c.pem platformctl preflight --deep ${ENV}`,
        says: /certificate[\s\S]*4 days/,
      },
    ],
    fix: [{ command: certificate(90) }, { command: `kill $(cat pid); ${SITE}` }],
    closed: {
      command: `NODE_EXTRA_CA_CERTS=c.pem platformctl preflight --deep ${ENV}`,
      says: /certificate +89 days left/,
    },
  },
]
