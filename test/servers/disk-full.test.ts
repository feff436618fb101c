import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { hasProgram } from '../support/programs.ts'

const bin = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))
const seed = fileURLToPath(new URL('../../scripts/runbooks/seed.ts', import.meta.url))
const here = hasProgram(['unshare', '--user', '--map-root-user', '--mount', 'true'], 'util-linux')

/** Runs a script where /mnt is a disk of its own, of `size`; `platformctl` and `seed` are functions in it. */
const onDisk = (size: string, script: string) =>
  execa(
    'unshare',
    [
      '--user',
      '--map-root-user',
      '--mount',
      'bash',
      '-c',
      `mount -t tmpfs -o size=${size} tmpfs /mnt && mount -t tmpfs tmpfs /srv
       platformctl() { '${process.execPath}' -- '${bin}' "$@"; }
       seed() { '${process.execPath}' '${seed}' "$@"; }
       ${script}`,
    ],
    { reject: false, cwd: path.dirname(bin) },
  )

test.skipIf(!here)('a backup to a disk that is full is refused, and leaves nothing there', async () => {
  const { stdout, stderr } = await onDisk(
    '64k',
    'seed /srv/platform.sqlite ada=due; platformctl db backup /mnt/b.sqlite.zst --data /srv; echo "exit $?"; ls -A /mnt; platformctl db verify --data /srv',
  )
  expect(stderr).toBe(
    'platformctl: the disk of /mnt is full; nothing was left there: free some space, or name another disk.',
  )
  expect(stdout).toMatch(/^exit 1\n✔ the file is sound, and 1 subscription is consistent/)
})

test.skipIf(!here)(
  'on a full disk a store is backed up and moved while its daemon is stopped, and what cannot start says why',
  async () => {
    const { stdout, stderr } = await onDisk(
      '1m',
      `seed /mnt/platform.sqlite ada=due; dd if=/dev/zero of=/mnt/other bs=1k 2> /dev/null
     platformctl db status --data /mnt | head -1
     platformctl db backup /srv/b.sqlite.zst --data /mnt
     platformctl db restore /srv/b.sqlite.zst --data /srv/larger --without-journal --sent-from /mnt/platform.sqlite > /dev/null
     platformctl db verify --data /srv/larger; ls -A /mnt
     platformctl preflight --deep --no-config --data /mnt > /srv/report; echo "exit $?"; grep -o 'The store cannot.*' /srv/report
     platformctl mail pause --reason test --data /mnt; echo "exit $?"
     platformctl daemon --data /mnt --web-port 0 --api-port 0 --agent-port 0 > /srv/log; echo "exit $?"`,
    )
    expect(stdout).toMatch(
      /^store .*\n\/srv\/b\.sqlite\.zst: .*\nchecked, .*\n✔ the file is sound.*\nother\n(?:platform[-.a-z]+\n)+exit 1\nThe store cannot be used: its disk is full\.\nexit 2\nexit 2$/,
    )
    const full = 'platformctl: /mnt/platform.sqlite cannot grow: the disk is full. Make room on it.'
    expect(stderr.split('\n').filter((line) => /disk|opened/.test(line))).toEqual([full, full])
  },
)

test.skipIf(!here)('a restore to a disk that is full leaves the store that was there as it was', async () => {
  const { stdout, stderr } = await onDisk(
    '900k',
    `seed /mnt/platform.sqlite ada=due
     seed /srv/platform.sqlite $(for i in $(seq 1 1500); do echo p$i=due; done)
     platformctl db backup /srv/b.sqlite.zst --data /srv > /dev/null
     platformctl db restore /srv/b.sqlite.zst --data /mnt --force; echo "exit $?"; ls -A /mnt; platformctl db verify --data /mnt`,
  )
  expect(stderr).toMatch(
    /the backup unpacks to \d+ MB, and the disk it is restored to has room for 0 MB: free some space/,
  )
  expect(stdout).toMatch(/^exit 1\nplatform\.sqlite\n✔ the file is sound, and 1 subscription is consistent/)
})

test.skipIf(!here)(
  'health and the log name a disk that fills up, and the store fails',
  async () => {
    const { stdout } = await onDisk(
      '2m',
      `exec 3> >(cat > /srv/log)
     '${process.execPath}' -- '${bin}' daemon --data /mnt --web-port 0 --api-port 0 --agent-port 0 --no-schedule >&3 &
     daemon=$!
     until url=$(grep -o '"web":"[^"]*' /srv/log | cut -d'"' -f4) && [ -n "$url" ]; do sleep 0.2; done
     dd if=/dev/zero of=/mnt/other bs=4k 2> /dev/null
     platformctl health --deep --url web=$url --format json | grep -o '"its disk is full"' | head -1
     node -e 'fetch(process.argv[1]).then((r) => r.text()).then((t) => console.log(t.match(/^platformctl_store_up .*/m)[0]))' $url/metrics
     grep -o 'store: its disk is full' /srv/log | head -1
     rm /mnt/other
     platformctl health --deep --url web=$url --format json | grep -c 'disk is full'
     kill $daemon; wait $daemon`,
    )
    expect(stdout.split('\n')).toEqual([
      '"its disk is full"',
      'platformctl_store_up 0',
      'store: its disk is full',
      '0',
    ])
  },
  60_000,
)
