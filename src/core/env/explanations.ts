/** The only errors that do not come from a rule of the contract. */
export const ERRORS = new Set(['required-missing', 'secret-set-twice', 'unreadable-secret-file'])

/** Explanations of every id that a validator or the reader gives. The rules explain themselves. */
export const WARNINGS: Readonly<Record<string, string>> = {
  'malformed-value':
    "The value does not have the form that the variable needs, so it counts as not set, unless the finding says otherwise. Set it as the finding says. For a variable of your own definition it is an error, unless the variable says malformed: 'warn'.",
  'required-missing':
    'An error: the definition says that this variable or group is required, always or under a condition that holds here. Set it for every service that reads it.',
  'placeholder-value':
    'The value looks left behind from an example (changeme, xxx, <your-key>). Set the real one, or remove the line.',
  'wrong-prefix':
    'Keys of this kind start with a known prefix, and this one does not. It may be another key, pasted into the wrong line.',
  'test-key-in-production': 'In production, a key of the provider’s test mode has no real effect.',
  'live-key-outside-production':
    'This key belongs to the provider’s live mode, and DEPLOY_ENVIRONMENT is not production: a test would move real money.',
  'almost-production':
    'Only the value production turns on what is checked for production; Production, prod, prd and live do not.',
  'public-secret':
    'Variables named NEXT_PUBLIC_… are sent to every browser, and this one holds a secret key. Revoke the key at the provider.',
  'weak-secret':
    'This secret is easy to guess. Make a new one, for example with: openssl rand -base64 32. For a provider’s key, check that you copied all of it.',
  'trusts-everybody':
    'X-Forwarded-For is trusted from any address, so each request can pretend to be another client and no rate limit holds.',
  'plain-http':
    'The address begins with http:// and its host is not on a private network: keys, tokens and addresses of people travel unencrypted.',
  'store-without-tls':
    'The connection to PostgreSQL is not encrypted, or not asked to be: sslmode is missing, disable, allow or prefer.',
  'token-claims-unchecked':
    'A token that the same issuer signed for another program, or another issuer with the same key, is accepted here as well. Set both variables to what your data store writes into aud and iss.',
  'unknown-name': 'Nothing reads this variable, and its name is one slip away from one that is read.',
  'duplicate-name':
    'The same name is set twice in one file; the later line wins in most readers, and the earlier in some.',
  'shadowed-value':
    'Another source sets the same name and wins: the process environment wins over files, a later file over an earlier one.',
  'runtime-variable':
    'The file sets a NODE_… variable. platformctl never obeys one from a file, but other readers pass it to Node, and NODE_OPTIONS makes Node run any code. Set it where the program is started.',
  'unreadable-line':
    'The line is neither an assignment nor a comment. Some readers skip it, others refuse the file.',
  'unterminated-quote':
    'A quote is opened and never closed. Some readers take the rest of the file as the value.',
  'unquoted-lines':
    'A key of several lines (PEM) has no quotes. Readers take its first line as the value and the others as lines of their own.',
  'text-after-quote': 'Text follows a closing quote. Readers disagree whether it belongs to the value.',
  'reader-difference':
    'Readers of env files understand this line differently, so the value depends on what starts the program. platformctl env dialects compares them.',
  'refused-by-reader':
    'One of the readers that a deployment uses refuses the whole file, so the program would not start there.',
  'package-missing': 'A configured feature is off until you install the optional package that it needs.',
  'names-not-read':
    'The files hold names that no group of this platform has. Other programs may read them, or one is misspelled.',
  'no-definition':
    'No platform definition was found in the working directory, beside an env file, or where the data folder’s daemon had it, and the files hold names that the default platform does not know. Your definition may be elsewhere: name it with --config. Or a daemon runs on this machine with files that another user could change.',
  'secret-set-twice':
    'A secret is set both by value and by file (NAME and NAME_FILE), so it is unclear which of the two is meant. Keep one.',
  'unreadable-secret-file':
    'The file that NAME_FILE names for the secret NAME is missing, empty, larger than 64 KB, not text, not a regular file, or not readable by this user.',
  'localhost-links':
    'In production, links in mails lead to localhost: NEXT_PUBLIC_SITE_URL is unset, malformed or an address of this machine.',
  'no-alert-channel':
    'In production, no channel for alerts is set: incidents show only on the status page, in the log and in /metrics.',
  'alerts-by-mail-only':
    'Mail is the only channel for alerts, so a fault of mail itself is never reported. Add a webhook.',
  'alert-mail-off':
    'ALERT_EMAIL_TO is set, and the mail group is not configured: alerts cannot go out by mail, and ALERT_WEBHOOK_URL is not set.',
  'configuration-differs': 'The running service has another value of this variable than the env file.',
  'configuration-missing': 'The env file sets this variable, and the running service does not.',
  'configuration-extra': 'The running service sets this variable, and the env file does not.',
  'configuration-replicas': 'Replicas of one service run with different values of this variable.',
  'configuration-definition':
    'The service runs another definition, or other mails and lessons, than this folder has.',
  'configuration-file-changed':
    'An env file of the service, or the file of a secret, was changed after it started. Restart it if the change is wanted.',
  'configuration-same': 'A restart with these files would change nothing.',
  'configuration-unreached': 'The service did not show its configuration; the finding says why.',
  'group-absent': 'A group of variables is not set at all, which is allowed.',
}

/** The findings of `preflight --deep`: the meaning of each id, and the fix that all its findings name. */
export const LIVE_FINDINGS = {
  'live-name': {
    meaning: 'This machine cannot resolve the host that this variable names.',
    fix: 'Check the spelling, and whether the name is in the DNS that this machine uses.',
  },
  'live-name-server': {
    meaning: 'No name server gave an answer, so nothing can be said about the name itself.',
    fix: 'Check this machine’s name servers (/etc/resolv.conf), and try again.',
  },
  'live-certificate': {
    meaning:
      'The server’s certificate is expired, is for another name, or is signed by an untrusted authority.',
    fix: 'Renew or replace it, or correct what its host resolves to; NODE_EXTRA_CA_CERTS adds an authority.',
  },
  'live-certificate-expiring': {
    meaning:
      'The certificate ends within 14 days, or is in the last third of a shorter life: its renewal has been missed.',
    fix: 'Find out why it was not renewed, and renew it.',
  },
  'live-plain-text': {
    meaning:
      'Keys, mails or what visitors send travel unencrypted: the mail server offers no STARTTLS, or an address is http:// in production.',
    fix: 'Use the https:// or smtps:// address, or turn on STARTTLS at the mail server.',
  },
  'live-unreachable': {
    meaning: 'The other side refused the connection, broke it, or gave no answer in time.',
    fix: 'Check that it runs, its port, and the firewalls and proxies (HTTPS_PROXY) on the way.',
  },
  'live-unauthorised': {
    meaning: 'The other side was reached and refused the key: it is wrong, revoked, or lacks a permission.',
    fix: 'Copy the key again from the provider, or make a new one.',
  },
  'live-unhealthy': {
    meaning:
      'The other side answers with an error, reports itself as failing or degraded, or is not the service expected there.',
    fix: 'Check that the address leads to the right service, and look at its own health.',
  },
  'live-store': {
    meaning: 'The store of STORE_URL or the data folder cannot be opened or written.',
    fix: 'Check the address, and run platformctl db status for the reason.',
  },
  'store-of-another': {
    meaning: 'A platform of another name has used the store, so the daemon would not start on it.',
    fix: 'Name that platform’s definition with --config, name another store, or, if the platform was renamed, start the daemon once with --adopt.',
  },
  'store-migration-pending': {
    meaning: 'The store’s schema is older than this build; the services migrate it when they start.',
    fix: 'Back the store up first (platformctl db backup), then start the new build or run platformctl db migrate.',
  },
  'store-schema-newer': {
    meaning: 'A newer build has migrated the store; this one may not be able to run with it.',
    fix: 'Deploy the newer build, or restore a backup from before its migration.',
  },
  'sender-spf': {
    meaning:
      'SPF (RFC 7208) names the servers that may send for a domain. Without a record mails are taken for spam; a record with an error, such as an include of a name without one, counts as none.',
    fix: 'Publish one TXT record v=spf1 … -all at the sender’s domain, with the provider’s include.',
  },
  'sender-dkim': {
    meaning:
      'DKIM (RFC 6376) signs mails with a key published under the sender’s domain; large mailbox providers require it. A key that cannot be read fails every signature.',
    fix: 'Publish the keys that the mail provider shows for this domain.',
  },
  'sender-dmarc': {
    meaning:
      'DMARC (RFC 7489) says what to do with mails that fail SPF and DKIM; large mailbox providers require it. A malformed record counts as none.',
    fix: 'Publish a TXT record at _dmarc of the sender’s domain: v=DMARC1; p=none to begin with.',
  },
} as const satisfies Record<string, { readonly meaning: string; readonly fix: string }>

export type LiveFindingId = keyof typeof LIVE_FINDINGS
