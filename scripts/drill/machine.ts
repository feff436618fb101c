/** A command and the output it must print: the cause while diagnosing, the proof after the fix. */
export interface Said {
  readonly command: string
  readonly says?: RegExp
}

/** One fault of a running platform, from the alert to "closed", with nothing but the package's own commands. */
export interface Fault {
  readonly name: string
  /** The rules of alerts.yaml that it makes fire. */
  readonly alerts?: readonly string[]
  /** The runbook for this fault. */
  readonly page: string
  /** A Bash script that causes the fault on an empty machine. */
  readonly make: string
  /** At most five commands to the cause: the last one names it. */
  readonly look: readonly Said[]
  /** At most three to the fix. */
  readonly fix: readonly Said[]
  readonly closed: Said
}

export const MOST_LOOKS = 5
export const MOST_FIXES = 3

export const DATA = '--data /var/lib/platformctl'
export const ENV = '--env-file /srv/platform/.env'
export const seed = (people: string) => `"$NODE" "$SEED" /var/lib/platformctl/platform.sqlite ${people}`

/** Starts a daemon as a supervisor would: its log in a file, its process id beside it. */
export const START = `cat > /srv/platform/start <<'END'
#!/bin/sh
platformctl daemon ${DATA} ${ENV} "$@" >> /srv/platform/log 2>&1 &
echo $! > /srv/platform/pid
platformctl health --wait 30s --service api > /dev/null 2>&1
END
chmod +x /srv/platform/start
touch /srv/platform/.env
`

/** Waits until the daemon is gone. */
export const STOP = 'kill $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.2; done'
