import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { bin, platformctl } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { hasProgram } from '../support/programs.ts'
import { postgresServer } from '../support/stores.ts'

/** The tables of listmonk that the page reads, as its schema.sql has them, with people in every state. */
const LISTMONK = `
CREATE TYPE list_optin AS ENUM ('single', 'double');
CREATE TYPE subscriber_status AS ENUM ('enabled', 'disabled', 'blocklisted');
CREATE TYPE subscription_status AS ENUM ('unconfirmed', 'confirmed', 'unsubscribed');
CREATE TABLE subscribers (id serial PRIMARY KEY, email text NOT NULL UNIQUE, status subscriber_status NOT NULL DEFAULT 'enabled');
CREATE TABLE lists (id serial PRIMARY KEY, name text NOT NULL, optin list_optin NOT NULL DEFAULT 'single');
CREATE TABLE subscriber_lists (subscriber_id integer REFERENCES subscribers(id), list_id integer REFERENCES lists(id),
  status subscription_status NOT NULL DEFAULT 'unconfirmed', updated_at timestamptz, PRIMARY KEY (subscriber_id, list_id));
INSERT INTO lists (name, optin) VALUES ('Kiln course', 'double'), ('News', 'single');
INSERT INTO subscribers (email, status) VALUES ('ada@example.com', 'enabled'), ('grace@example.com', 'enabled'),
  ('edsger@example.com', 'enabled'), ('blocked@example.com', 'blocklisted'), ('alan@example.com', 'disabled');
INSERT INTO subscriber_lists VALUES (1, 1, 'confirmed', '2024-03-01 10:00:12.25+01'), (2, 1, 'unconfirmed', now()),
  (3, 1, 'unsubscribed', now()), (4, 1, 'confirmed', now()), (5, 1, 'confirmed', now()), (1, 2, 'confirmed', now())`

test.skipIf(!hasProgram(['psql', '--version'], 'postgresql-client'))(
  'the page moves who confirmed a list of listmonk, with the time, and suppresses who was blocked there',
  async () => {
    const cwd = await emptyFolder()
    const server = await postgresServer()
    const url = await server.createDatabase()
    await server.query(url, LISTMONK)
    const data = path.join(cwd, 'data')
    await platformctl(['db', 'migrate', '--data', data], { cwd })
    const page = await readFile(new URL('../../runbooks/moving-lists.md', import.meta.url), 'utf8')
    const [, block = ''] = /### From listmonk\n\n```sh\n([\s\S]+?)```/.exec(page) ?? []
    await writeFile(
      path.join(cwd, 'platformctl'),
      `#!/bin/sh\nexec '${process.execPath}' -- '${bin}' "$@"\n`,
      { mode: 0o755 },
    )
    const done = await execa('bash', ['-euc', block.replaceAll('/var/lib/platformctl', data)], {
      cwd,
      env: { LISTMONK_URL: url, PATH: `${cwd}:${process.env.PATH}` },
    })
    expect(done.stdout).toContain('1 added')
    const moved = await platformctl(['course', 'import', 'people.csv', '--data', data], { cwd })
    expect(moved.stdout).toBe('1 imported, 0 in the course already, 0 left out')
    const shown = await platformctl(['course', 'show', 'ada@example.com', '--data', data], { cwd })
    expect(shown.stdout).toContain('2024-03-01T09:00:12.250Z, listmonk, confirmed the list Kiln course')
  },
)
