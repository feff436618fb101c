// The check before a deploy in a project with envalid: reads the named file and checks every variable of it.
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { cleanEnv, str, url } from 'envalid'

const env = parseEnv(readFileSync(process.argv[2], 'utf8'))
const specs = Object.fromEntries(
  Object.keys(env).map((name) => [
    name,
    (/_(?:URL|ENDPOINT|DSN)$/.test(name) ? url : str)({ default: undefined }),
  ]),
)
process.stdout.write(`${Object.keys(cleanEnv(env, specs)).length} variables\n`)
