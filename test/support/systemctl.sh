#!/bin/bash
# What systemd does for the units of this package, as far as a test needs it: another user, its folders, its credential.
start() {
  unit=$(ls /etc/systemd/system/"$1" /usr/lib/systemd/system/"$1" 2>/dev/null | head -n 1)
  line=$(sed -n 's/^ExecStart=//p' "$unit" | head -n 1 | sed 's#%S#/var/lib#; s#%d#/run/credentials#')
  install -d -o 64321 -g 64321 -m 700 /var/lib/platformctl /run/credentials
  install -d -o 64321 -g 64321 -m 755 /run/platformctl
  install -o 64321 -m 400 /etc/platformctl/env /run/credentials/env
  cd "$(sed -n 's/^WorkingDirectory=-//p' "$unit")" || cd /
  exec setpriv --reuid=64321 --regid=64321 --clear-groups --no-new-privs --inh-caps=-all \
    env -i PATH="$PATH" RUNTIME_DIRECTORY=/run/platformctl $line
}
[ "$1" = enable ] || exit 0
for unit; do
  case $unit in *.service) start "$unit" >"/run/$unit.log" 2>&1 & echo $! >"/run/$unit.pid" ;; esac
done
