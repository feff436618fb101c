import type { Define } from '../command.ts'
import { afterRestore, backup, journal, restore } from '../db/backup.ts'
import { copy } from '../db/copy.ts'
import { audit, migrate, status, verify } from '../db/store.ts'

export const define: Define = () => ({
  description: 'Maintain the store: the SQLite file in the data folder, or the database in STORE_URL.',
  exits:
    '0 done, 1 refused or a check failed (nothing was changed), 2 wrong usage, no such store or backup, 3 the server of STORE_URL was not reached or refused.',
  examples: [
    'status --data /var/lib/platformctl',
    'migrate --plan',
    'backup /var/backups/platform-2026-11-21.sqlite.zst',
    'restore /var/backups/platform-2026-11-21.sqlite.zst --force',
  ],
  commands: {
    status,
    migrate,
    backup,
    restore,
    'after-restore': afterRestore,
    journal,
    copy,
    verify,
    audit,
  },
})
