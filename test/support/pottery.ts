import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const example = fileURLToPath(new URL('../../examples/ceramics', import.meta.url))

/** Fills an empty folder with a copy of the ceramics school with a second service that platformctl serves, and a module that the definition imports. */
export async function potteryFolder(folder: string): Promise<string> {
  await cp(example, folder, { recursive: true, filter: (name) => !/node_modules|package-lock/.test(name) })
  await rm(path.join(folder, 'package.json'))
  const file = path.join(folder, 'platform.config.ts')
  const text = await readFile(file, 'utf8')
  await writeFile(
    file,
    `import { shop } from './services.ts'\n${text.replace("    web: { label: 'Website' },", '    ...shop,\n    web: {},').replace('  groups: {', "  groups: {\n    shop: { services: ['web'], unlocks: 'der Laden', absent: 'kein Laden', variables: { SHOP_URL: { kind: 'url' }, SHOP_KEY: { kind: 'secret', services: ['shop'] } } },")}`,
  )
  await writeFile(
    path.join(folder, 'services.ts'),
    "export const shop = { shop: { port: 4000, address: 'SHOP_URL', health: '/up' } }\n",
  )
  return folder
}
