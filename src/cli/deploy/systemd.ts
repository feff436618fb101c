import path from 'node:path'
import { type DeployFile, type Subject, WITNESS } from './subject.ts'

const LIMITS = `MemoryMax=1G
TasksMax=64
# A core dump would hold every secret and address of the process.
LimitCORE=0`
const HARDENING = `CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes
LockPersonality=yes
# V8 makes machine code at run time: MemoryDenyWriteExecute would end it at its first hot function.
MemoryDenyWriteExecute=no
PrivateDevices=yes
PrivateTmp=yes
PrivateUsers=yes
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RemoveIPC=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM`

/** The end of a service that listens. */
const ON_NETWORK = `UMask=0077

RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
${HARDENING}

[Install]
WantedBy=multi-user.target
`

export function systemdFiles(subject: Subject): readonly DeployFile[] {
  const { definition, services, serverFolder, sources, tarballs, manifests } = subject
  const config = definition === undefined ? '' : ` --config ${serverFolder}/${definition}`
  // Where a definition is found without its name.
  const home = definition === undefined ? `WorkingDirectory=-${serverFolder}\n` : ''
  const tarball = tarballs.find((one) => path.posix.basename(one).startsWith('platformctl-'))
  const install =
    manifests.length === 0 ? '' : `#   (cd ${serverFolder} && npm ci --omit=dev --ignore-scripts)\n`
  // Other files of the server's folder, such as an env file, keep their modes.
  const files = [...sources, ...manifests]
  const folders = files.flatMap((one) => [...one.matchAll(/\//g)].map(({ index }) => one.slice(0, index)))
  const copy =
    definition === undefined
      ? ''
      : `#   install -d ${serverFolder}
#   [ . -ef ${serverFolder} ] || cp -R --parents ${files.join(' ')} ${serverFolder}
${install}#   (cd ${serverFolder} && chmod a+rx,go-w ${[...new Set(['.', ...folders])].join(' ')} && chmod -R a+rX,go-w ${files.join(' ')}${install && ' node_modules'})
`
  const daemon = `# One Linux machine. As root, the executable, or the package with Node 22.18 or later in /usr/bin:
#   install platformctl /usr/bin/
#   npm install --global --prefix /usr ${tarball === undefined ? 'platformctl' : `./${tarball}`}
# Then:
${copy}#   install -D -m 600 .env /etc/platformctl/env
#   cp platformctl*.service platformctl*.timer /etc/systemd/system/    (in the folder of this file)
#   systemctl daemon-reload
#   systemctl enable --now platformctl.service platformctl-backup.timer
[Unit]
Description=platformctl: ${services.map(({ name }) => name).join(', ')}
Documentation=man:platformctl(1)
Wants=network-online.target
After=network-online.target time-sync.target
# Give up after five starts in five minutes: an environment that is half-configured does not heal by itself.
StartLimitIntervalSec=5min
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=all
WatchdogSec=60
# The first start of a new version may change millions of rows before it is ready.
TimeoutStartSec=1h
${home}ExecStart=/usr/bin/platformctl daemon${config} --env-file %d/env --data %S/platformctl
# Stays root:root 0600 on disk; the service reads a copy that nobody else can.
LoadCredential=env:/etc/platformctl/env
Restart=on-failure
RestartSec=5
# 2: the command line or the definition is wrong, or the store's file cannot be opened, and the next start would say the
# same. 1 is also a fault at run time, after which a new process serves again, 3 a PostgreSQL that is not up yet, and 70 a
# disk that did not confirm a write.
RestartPreventExitStatus=2
# Longer than --grace and --deadline together, so that no message is cut in the middle.
TimeoutStopSec=120
KillMode=mixed
${LIMITS}

DynamicUser=yes
User=platformctl
StateDirectory=platformctl
StateDirectoryMode=0700
# Where commands find the daemon that runs here.
RuntimeDirectory=platformctl
RuntimeDirectoryPreserve=restart
${ON_NETWORK}`
  const backup = `[Unit]
Description=Back the platform's store up, and verify it
Documentation=man:platformctl(1)
After=platformctl.service

[Service]
Type=oneshot
${home}# A new name each time; what is older than a fortnight goes once the new one is there, also without visitors' events.
ExecStart=/bin/sh -ec 'new="%S/platformctl-backups/platform-$$(date -u +%%Y%%m%%dT%%H%%M%%SZ).sqlite.zst"; code=0; /usr/bin/platformctl db backup${config} --data %S/platformctl "$$new" || code=$$?; [ ! -e "$$new" ] || /usr/bin/find %S/platformctl-backups -name "platform-*.sqlite.zst" -mtime +14 -delete; exit $$code'
# Last: what it finds wrong in a row keeps no backup from being made.
ExecStart=/usr/bin/platformctl db verify${config} --data %S/platformctl
Nice=10
TimeoutStartSec=15min
${LIMITS}

# The same user as the daemon's, so that both own the store.
DynamicUser=yes
User=platformctl
StateDirectory=platformctl platformctl-backups
StateDirectoryMode=0700
UMask=0077

PrivateNetwork=yes
RestrictAddressFamilies=AF_UNIX
${HARDENING}
`
  const timer = `[Unit]
Description=Back the platform's store up every night

[Timer]
OnCalendar=*-*-* 03:17:00 UTC
RandomizedDelaySec=10min
# A machine that was off at night backs up when it comes back.
Persistent=yes

[Install]
WantedBy=timers.target
`
  const witness = `# A witness, on another machine than the platform (docs/guides/witness.md). There, as root, platformctl as for the platform, and:
#   install -D -m 600 witness.env /etc/platformctl/witness.env
#   cp platformctl-witness.service /etc/systemd/system/
#   systemctl daemon-reload
#   systemctl enable --now platformctl-witness.service
# witness.env holds WITNESS_SECRET and the variables of an alert channel. Replace the address of the platform and the name
# of the witness; add --peer ADDRESS for each other witness.
[Unit]
Description=platformctl: a witness of the platform
Documentation=man:platformctl(1)
Wants=network-online.target
After=network-online.target time-sync.target

[Service]
Type=exec
ExecStart=/usr/bin/platformctl ${WITNESS.words.join(' ')} --env-file %d/env --data %S/platformctl-witness
# Stays root:root 0600 on disk; the witness reads a copy that nobody else can.
LoadCredential=env:/etc/platformctl/witness.env
Restart=on-failure
RestartSec=5
# 2: the command line or WITNESS_SECRET is wrong, or the port is taken, and the next start would say the same.
RestartPreventExitStatus=2
MemoryMax=256M
TasksMax=64
# A core dump would hold the secret.
LimitCORE=0

DynamicUser=yes
StateDirectory=platformctl-witness
StateDirectoryMode=0700
${ON_NETWORK}`
  return [
    { path: 'platformctl.service', text: daemon },
    { path: 'platformctl-backup.service', text: backup },
    { path: 'platformctl-backup.timer', text: timer },
    { path: 'platformctl-witness.service', text: witness, optional: true },
  ]
}
