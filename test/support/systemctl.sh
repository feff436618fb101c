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
case $1 in
  enable | try-restart) ;;
  *) exit 0 ;;
esac
for unit; do
  case $unit in *.service) ;; *) continue ;; esac
  if [ -e "/run/$unit.pid" ]; then
    kill "$(cat "/run/$unit.pid")"
    while kill -0 "$(cat "/run/$unit.pid")" 2>/dev/null; do sleep 0.1; done
  elif [ "$1" = try-restart ]; then
    continue
  fi
  start "$unit" >>"/run/$unit.log" 2>&1 &
  echo $! >"/run/$unit.pid"
done
