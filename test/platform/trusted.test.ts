import { chmod, chown, lchown, mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { refuseForeignDefinition } from '../../src/platform/find.ts'
import { emptyFolder } from '../support/folder.ts'

const ROOT = { user: 0, group: 0 }
const ADA = { user: 1001, group: 1001 }
const FILE = 'platform.config.js'

/** A definition of root's in a folder of its own. */
async function definition() {
  const folder = path.join(await emptyFolder(), 'platform')
  await mkdir(folder, { mode: 0o755 })
  const file = path.join(folder, FILE)
  await writeFile(file, 'export default {}', { mode: 0o644 })
  return {
    folder,
    file,
    above: path.dirname(folder),
    load: (account = ROOT) => refuseForeignDefinition(folder, FILE, account),
  }
}

// Only root can give a file to somebody else.
const asRoot = test.skipIf(process.getuid?.() !== 0)

asRoot('a definition of root or of this account is loaded', async () => {
  const { folder, file, load } = await definition()
  expect(() => load()).not.toThrow()
  await chown(folder, ADA.user, ADA.group)
  await chown(file, ADA.user, ADA.group)
  await chmod(file, 0o664)
  await chmod(folder, 0o775)
  // The folder above is of root alone.
  await chmod(path.dirname(folder), 0o755)
  expect(() => load(ADA)).not.toThrow()
})

asRoot('a definition that another user put into a folder of everybody’s is refused', async () => {
  const { folder, file, load } = await definition()
  await chmod(folder, 0o1777)
  expect(() => load()).not.toThrow()
  await chown(file, ADA.user, ADA.group)
  expect(() => load()).toThrow(/belongs to another user.*--config/)
})

asRoot.each([
  ['a file that everybody may write', 'file', 0o646, /may write to the file/],
  ['a file that its group may write', 'file', 0o664, /may write to the file/],
  ['a folder that everybody may write', 'folder', 0o777, /may replace files/],
  ['a folder that its group may write', 'folder', 0o775, /may replace files/],
  ['a folder above its own that everybody may write', 'above', 0o777, /may replace files/],
] as const)('%s is refused, unless the group is one’s own', async (_, part, mode, reason) => {
  const it = await definition()
  await chown(it[part], 0, 5)
  await chmod(it[part], mode)
  expect(() => it.load()).toThrow(reason)
  await chown(it[part], 0, 0)
  if ((mode & 0o002) === 0) expect(() => it.load()).not.toThrow()
})

asRoot('a link is refused if its file, its folder or the link is another user’s', async () => {
  const it = await definition()
  const elsewhere = path.join(await emptyFolder(), 'd.js')
  await rename(it.file, elsewhere)
  await symlink(elsewhere, it.file)
  expect(() => it.load()).not.toThrow()
  await lchown(it.file, ADA.user, ADA.group)
  expect(() => it.load()).toThrow(/belongs to another user/)
  await lchown(it.file, 0, 0)
  await chown(elsewhere, ADA.user, ADA.group)
  expect(() => it.load()).toThrow(/belongs to another user/)
  await chown(elsewhere, 0, 0)
  await chown(it.folder, ADA.user, ADA.group)
  expect(() => it.load()).toThrow(/The folder .* belongs to another user/)
})
