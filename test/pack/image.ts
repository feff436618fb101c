import { cp, mkdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect } from 'vitest'
import { emptyFolder } from '../support/folder.ts'
import { potteryFolder } from '../support/pottery.ts'

interface ImageParts {
  readonly tarball: string
  /** Runs platformctl in a folder. */
  readonly run: (args: string[], cwd: string) => Promise<unknown>
}

/** The image of a definition's files: built by the commands of its Dockerfile, from what its ignore file lets pass. */
export async function buildImage({ tarball, run }: ImageParts) {
  const folder = await emptyFolder()
  const inFolder = (name: string) => path.join(folder, name)
  const [source, root, data] = [inFolder('project'), inFolder('platform'), inFolder('data')] as const
  for (const one of [source, root]) await mkdir(one)
  await potteryFolder(source)
  await cp(tarball, path.join(source, path.basename(tarball)))
  await run(['deploy', 'init', 'docker'], source)
  const made = (name: string) => readFile(path.join(source, 'deploy', name), 'utf8')
  const context = [...(await made('Dockerfile.dockerignore')).matchAll(/^!(.+)$/gm)].map(
    ([, name = '']) => name,
  )
  const dockerfile = await made('Dockerfile')
  /** As inside of the image: the same words with the folders of this test. */
  const inside = (words: string) =>
    words.replaceAll(/(?<=^|[\s:"])\/(platform|data)\b/g, (_, name) => path.join(folder, name))
  const env = {
    PATH: `${root}/node_modules/.bin:${process.env.PATH}`,
    BUILD_STAMP: 'test',
    NODE_ENV: 'production',
  }

  const [, install = '', runtime = ''] = dockerfile.replaceAll(/ \\\n\s*/g, ' ').split(/^FROM .*\n/m)
  for (const [, instruction, words = ''] of `${install}${runtime}`.matchAll(/^(RUN|COPY) (.*)$/gm)) {
    if (instruction === 'RUN') await execa('bash', ['-ec', inside(words)], { cwd: root, env })
    // The modules are in place: both stages have the same folder here.
    else if (!words.startsWith('--from=')) {
      const names = words.split(' ').slice(0, -1)
      for (const name of names) {
        expect(context).toContain(name)
        await cp(path.join(source, name), path.join(root, name), { recursive: true })
      }
    }
  }
  await execa('chmod', ['755', folder])
  const lists = (stage: string) => {
    const text = dockerfile.split(/^FROM /m).findLast((one) => one.startsWith(stage)) ?? ''
    return (instruction: RegExp) => JSON.parse(inside(instruction.exec(text)?.[1] ?? '[]')) as string[]
  }
  return {
    root,
    data,
    env,
    roleOf: (name: string) => lists(`runtime AS ${name}\n`),
    entry: lists('$')(/^ENTRYPOINT (.*)$/m),
  }
}
