// The check before a deploy in a project with t3-env and zod: reads the named file and checks every variable of it.
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { createEnv } from '@t3-oss/env-core'
import { z } from 'zod'

const runtimeEnv = parseEnv(readFileSync(process.argv[2], 'utf8'))
const checked = (isPublic) =>
  Object.fromEntries(
    Object.keys(runtimeEnv)
      .filter((name) => name.startsWith('NEXT_PUBLIC_') === isPublic)
      .map((name) => [name, (/_(?:URL|ENDPOINT|DSN)$/.test(name) ? z.url() : z.string()).optional()]),
  )
const env = createEnv({
  server: checked(false),
  client: checked(true),
  clientPrefix: 'NEXT_PUBLIC_',
  runtimeEnv,
  emptyStringAsUndefined: true,
})
process.stdout.write(`${Object.keys(env).length} variables\n`)
