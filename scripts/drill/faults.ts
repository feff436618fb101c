import { DATA, ENV, type Fault, START, seed } from './machine.ts'

export const FAULTS: readonly Fault[] = [
  {
    name: 'STORE_URL is misspelt',
    page: 'probe-failing.md',
    make: 'echo STORE_URL=postgress://db/platform > .env',
    look: [{ command: `platformctl daemon ${DATA} ${ENV}`, says: /STORE_URL is not the address of a store/ }],
    fix: [{ command: 'echo STORE_URL=sqlite:/var/lib/platformctl/platform.sqlite > .env' }],
    closed: { command: `platformctl preflight ${ENV}`, says: /0 errors|passed|✔/ },
  },
  {
    name: 'mail is half-configured',
    alerts: ['PlatformProbeDegraded'],
    page: 'launch.md',
    make: 'echo MAILER_API_KEY=kX3vQ8tR2mZ7pL5w > .env',
    look: [{ command: `platformctl preflight ${ENV}`, says: /MAILER_FROM/ }],
    fix: [{ command: 'rm .env && touch .env' }],
    closed: { command: `platformctl preflight ${ENV}`, says: /absent [^✔]*\bmail,/ },
  },
  {
    name: 'the mail provider is not reached',
    alerts: ['PlatformDispatchFailing', 'PlatformLessonsLate'],
    page: 'dispatch-stalled.md',
    make: `${seed('ada=due')}
printf 'MAILER_API_KEY=kX3vQ8tR2mZ7pL5w\\nMAILER_FROM=course@example.com\\nMAILER_SMTP_URL=smtp://127.0.0.1:1\\n' > .env`,
    look: [
      { command: `platformctl course status ${DATA} ${ENV}`, says: /due now +1 {2}the oldest for 1 h 5 min/ },
      { command: `platformctl dispatch --local ${DATA} ${ENV}`, says: /0 sent/ },
      { command: `platformctl preflight --deep ${ENV}`, says: /MAILER_SMTP_URL[\s\S]*refused/ },
    ],
    fix: [{ command: 'rm .env && touch .env' }],
    closed: { command: `platformctl preflight --deep ${ENV}`, says: /0 passed|0 failed/ },
  },
  {
    name: 'an outcome is unknown',
    alerts: ['PlatformDeliveriesParked'],
    page: 'unknown-deliveries.md',
    make: seed('ada=unknown'),
    look: [
      {
        command: `platformctl course status ${DATA}`,
        says: /unknown +ada-8f3kQ2vX .*\n +to a…@example\.com/,
      },
      { command: `platformctl course show ada-8f3kQ2vX ${DATA}`, says: /attempt 1: unknown/ },
    ],
    fix: [{ command: `platformctl course resolve ada-8f3kQ2vX sent ${DATA}` }],
    closed: { command: `platformctl course status ${DATA}`, says: /^unknown {7}0$/m },
  },
  {
    name: 'a lesson is parked',
    alerts: ['PlatformDeliveriesParked', 'PlatformDeliveriesFailing'],
    page: 'unknown-deliveries.md',
    make: seed('grace=parked'),
    look: [{ command: `platformctl course status ${DATA}`, says: /554 5\.7\.1 message refused/ }],
    fix: [{ command: `platformctl course resolve grace-8f3kQ2vX retry ${DATA}` }],
    closed: { command: `platformctl course status ${DATA}`, says: /^parked {8}0$/m },
  },
  {
    name: 'a page of the store is damaged',
    page: 'store.md',
    make: `${seed('ada=due grace=sent')}
platformctl db backup /var/backups/b.sqlite.zst ${DATA}
dd if=/dev/urandom of=/var/lib/platformctl/platform.sqlite bs=4096 seek=3 count=8 conv=notrunc`,
    look: [{ command: `platformctl db verify ${DATA}`, says: /damaged|not sound|✖/ }],
    fix: [{ command: `platformctl db restore /var/backups/b.sqlite.zst ${DATA} --force`, says: /^restored/ }],
    closed: { command: `platformctl db verify ${DATA}`, says: /the file is sound/ },
  },
  {
    name: 'a page is damaged under a running daemon',
    alerts: ['PlatformStoreDown'],
    page: 'store.md',
    make: `${START}${seed('ada=due grace=sent')}
platformctl db backup /var/backups/b.sqlite.zst ${DATA}
/srv/platform/start --no-schedule
dd if=/dev/urandom of=/var/lib/platformctl/platform.sqlite bs=4096 seek=3 count=8 conv=notrunc
sleep 7`,
    look: [{ command: 'platformctl health --deep', says: /a page of its file is damaged/ }],
    fix: [
      {
        command: 'kill $(cat /srv/platform/pid); while kill -0 $(cat /srv/platform/pid); do sleep 0.2; done',
      },
      { command: `platformctl db restore /var/backups/b.sqlite.zst ${DATA} --force`, says: /^restored/ },
      { command: '/srv/platform/start --no-schedule' },
    ],
    closed: { command: 'platformctl health --deep', says: /all 3 services are ok|degraded/ },
  },
  {
    name: 'the store was never backed up',
    alerts: ['PlatformBackupMissing'],
    page: 'store.md',
    make: `${START}${seed('ada=due')}
/srv/platform/start --no-schedule`,
    look: [{ command: `platformctl status ${DATA}`, says: /backup +never/ }],
    fix: [{ command: `platformctl db backup /var/backups/b.sqlite.zst ${DATA}`, says: /checked, packed/ }],
    closed: { command: `platformctl status ${DATA}`, says: /backup +\d+ s ago/ },
  },
  {
    name: 'the API is not reached',
    alerts: ['PlatformServiceFailing'],
    page: 'probe-failing.md',
    make: `${START}echo API_URL=http://127.0.0.1:1 > .env
/srv/platform/start`,
    look: [
      { command: 'platformctl health --deep', says: /api/ },
      { command: `platformctl preflight --deep ${ENV}`, says: /API_URL[\s\S]*refused/ },
    ],
    fix: [
      { command: 'echo > .env; kill $(cat pid); while kill -0 $(cat pid); do sleep 0.2; done' },
      { command: '/srv/platform/start' },
    ],
    closed: { command: 'platformctl health --deep', says: /ok/ },
  },
  {
    name: 'nothing runs the schedule',
    alerts: ['PlatformLessonsLate'],
    page: 'dispatch-stalled.md',
    make: `${START}${seed('ada=due')}
/srv/platform/start --no-schedule`,
    look: [{ command: `platformctl status ${DATA}`, says: /schedule +off/ }],
    fix: [
      { command: 'kill $(cat pid); while kill -0 $(cat pid); do sleep 0.2; done' },
      { command: '/srv/platform/start' },
    ],
    closed: { command: `platformctl status ${DATA}`, says: /schedule +on/ },
  },
  {
    name: 'the daemon was killed',
    alerts: ['PlatformDown'],
    page: 'alerts.md#platformdown',
    make: `${START}/srv/platform/start; kill -9 $(cat pid); sleep 0.3`,
    look: [
      { command: `platformctl status ${DATA}`, says: /not running; it ended without stopping in order/ },
    ],
    fix: [{ command: '/srv/platform/start' }],
    closed: { command: `platformctl status ${DATA}`, says: /running as process/ },
  },
  {
    name: 'a port is taken',
    page: 'probe-failing.md',
    make: `${START}/srv/platform/start`,
    look: [{ command: 'platformctl daemon --data /srv/other', says: /port 3000 of web is in use/ }],
    fix: [
      { command: 'kill $(cat pid); while kill -0 $(cat pid); do sleep 0.2; done' },
      { command: '/srv/platform/start' },
    ],
    closed: { command: 'platformctl health', says: /ok/ },
  },
  {
    name: 'a command acts on another store than the daemon',
    page: 'store.md',
    make: `${START}${seed('ada=due')}
mkdir /srv/moved
echo STORE_URL=sqlite:/srv/moved/platform.sqlite > .env
/srv/platform/start`,
    look: [
      {
        command: `platformctl course status ${DATA}`,
        says: /has kept its store in \/srv\/moved\/platform\.sqlite/,
      },
    ],
    fix: [{ command: `platformctl course status ${DATA} ${ENV}`, says: /confirmed +0/ }],
    closed: { command: `platformctl status ${DATA}`, says: /store +sqlite \/srv\/moved/ },
  },
  {
    name: 'the health token is missing',
    alerts: ['PlatformDown'],
    page: 'alerts.md',
    make: `${START}echo HEALTH_DEEP_TOKEN=kX3vQ8tR2mZ7pL5wkX3vQ8tR2mZ7pL5w > .env
/srv/platform/start`,
    look: [
      { command: 'platformctl health --deep --url web=http://127.0.0.1:3000', says: /token missing: web/ },
    ],
    fix: [{ command: `platformctl health --deep ${ENV}`, says: /ok|degraded/ }],
    closed: { command: `platformctl health --deep ${ENV}`, says: /ok|degraded/ },
  },
  {
    name: 'somebody got another mail after unsubscribing',
    page: 'privacy.md',
    make: seed('ada=sent'),
    look: [{ command: `platformctl course show ada@example.com ${DATA}`, says: /day 1, attempt 1: sent/ }],
    fix: [{ command: `platformctl course erase ada@example.com --yes ${DATA}`, says: /^erased/ }],
    closed: {
      command: 'grep -a -c ada@example.com /var/lib/platformctl/platform.sqlite',
      says: /^0$/m,
    },
  },
  {
    name: 'a backup is older than an erasure',
    page: 'store.md',
    make: `${seed('ada=sent grace=sent')}
platformctl db backup /var/backups/b.sqlite.zst ${DATA}
platformctl course erase ada@example.com --yes ${DATA}`,
    look: [
      {
        command: `platformctl course show ada@example.com ${DATA}`,
        says: /no subscription has this address/,
      },
    ],
    fix: [
      {
        command: `platformctl db restore /var/backups/b.sqlite.zst ${DATA} --force`,
        says: /because it happened after the backup: 1 erased/,
      },
    ],
    closed: {
      command: `platformctl course show ada@example.com ${DATA}`,
      says: /no subscription has this address/,
    },
  },
  {
    name: 'a caller has the wrong dispatch secret',
    alerts: ['PlatformSecretRefused'],
    page: 'alerts.md#platformsecretrefused',
    make: `${START}echo EMAIL_DISPATCH_SECRET=kX3vQ8tR2mZ7pL5wkX3vQ8tR2mZ7pL5w > .env
/srv/platform/start
EMAIL_DISPATCH_SECRET=another-secret-of-thirty-two-bytes platformctl dispatch --url http://127.0.0.1:3000`,
    look: [{ command: 'grep secret_refused /srv/platform/log', says: /EMAIL_DISPATCH_SECRET is wrong/ }],
    fix: [{ command: `platformctl dispatch --url http://127.0.0.1:3000 ${ENV}`, says: /0 sent/ }],
    closed: {
      command: 'curl -s http://127.0.0.1:3000/metrics',
      says: /secrets_refused_total\{secret="dispatch",given="wrong"\} 1/,
    },
  },
  {
    name: 'two builds run side by side',
    alerts: ['PlatformBuildSkew'],
    page: 'build-skew.md',
    make: `${START}echo BUILD_STAMP=b1 > .env
/srv/platform/start --service web --service agent
BUILD_STAMP=b2 platformctl daemon --service api --data /srv/api > /srv/platform/api.log 2>&1 &
echo $! > /srv/platform/api.pid
platformctl health --wait 30s --service api`,
    look: [
      {
        command: 'platformctl health',
        says: /different builds run: .*b1.*b2|different builds run: .*b2.*b1/,
      },
    ],
    fix: [
      { command: 'kill $(cat api.pid); while kill -0 $(cat api.pid); do sleep 0.2; done' },
      {
        command:
          'BUILD_STAMP=b1 platformctl daemon --service api --data /srv/api > api.log 2>&1 & echo $! > api.pid; platformctl health --wait 30s --service api',
      },
    ],
    closed: { command: 'platformctl health --expect-build b1', says: /ok/ },
  },
  {
    name: 'a certificate is signed by nobody that is trusted',
    alerts: ['PlatformCertificateRefused'],
    page: 'certificate-expiring.md',
    make: `openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 90 -subj /CN=localhost -addext subjectAltName=DNS:localhost
node -e "require('node:https').createServer({key:require('fs').readFileSync('k.pem'),cert:require('fs').readFileSync('c.pem')},(q,s)=>s.end('{}')).listen(4430)" > /dev/null 2>&1 &
echo $! > pid
sleep 0.5
echo NEXT_PUBLIC_SITE_URL=https://localhost:4430 > .env`,
    look: [
      {
        command: `platformctl preflight --deep ${ENV}`,
        says: /NEXT_PUBLIC_SITE_URL is signed by nobody that this machine trusts/,
      },
    ],
    fix: [{ command: 'export NODE_EXTRA_CA_CERTS=/srv/platform/c.pem' }],
    closed: { command: `platformctl preflight --deep ${ENV}`, says: /certificate +89 days left/ },
  },
  {
    name: 'a move to another store is interrupted before the daemon stops',
    page: 'store.md',
    make: `${START}${seed('ada=due')}
/srv/platform/start`,
    look: [
      {
        command: `platformctl db copy --to postgres://platform@127.0.0.1:1/platform ${DATA}`,
        says: /is open in another process: stop the daemon first; nothing was copied/,
      },
    ],
    fix: [{ command: 'kill $(cat pid); while kill -0 $(cat pid); do sleep 0.2; done' }],
    closed: { command: `platformctl db verify ${DATA}`, says: /the file is sound/ },
  },
]
