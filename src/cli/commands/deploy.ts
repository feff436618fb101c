import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { shellWord } from '../../core/daemon-record.ts'
import { codeOf } from '../../core/errors.ts'
import { attempt } from '../../core/is-record.ts'
import { findDefinition } from '../../platform/find.ts'
import { command, type Define } from '../command.ts'
import { type Context, EXIT, programName, whichPlatform, wrongUsage } from '../context.ts'
import { composeFiles } from '../deploy/compose.ts'
import { dockerFiles } from '../deploy/docker.ts'
import { kubernetesFiles } from '../deploy/kubernetes.ts'
import { type DeployFile, type Places, readSubject, type Subject } from '../deploy/subject.ts'
import { systemdFiles } from '../deploy/systemd.ts'
import { choice } from '../inputs.ts'
import { compact } from '../output/text.ts'
import { writeNewFiles } from './init.ts'

const OUT = {
  '--out <folder>':
    'where the files are (default: deploy beside the definition; for systemd and kubernetes, a folder in it)',
} as const

interface Target {
  /** The folder for its files, from that of the definition. */
  readonly folder: string
  /** The file whose first lines say how to use them. */
  readonly first: string
  readonly files: (subject: Subject, places: Places) => readonly DeployFile[]
}

export const TARGETS: Readonly<Record<'systemd' | 'docker' | 'compose' | 'kubernetes', Target>> = {
  systemd: { folder: 'deploy/systemd', first: 'platformctl.service', files: systemdFiles },
  docker: { folder: 'deploy', first: 'Dockerfile', files: dockerFiles },
  compose: {
    folder: 'deploy',
    first: 'compose.yaml',
    files: (subject, places) => [...dockerFiles(subject, places), ...composeFiles(subject, places)],
  },
  kubernetes: { folder: 'deploy/kubernetes', first: 'platform.yaml', files: kubernetesFiles },
}
const NAMES = Object.keys(TARGETS) as readonly (keyof typeof TARGETS)[]

export const define: Define = () => ({
  description:
    'Write the files that run this platform on a server, and a witness on another one, made from its definition: services, ports, mails, lessons, secrets as files. Later, see which files are out of date.',
  examples: ['init systemd', 'init compose --out ops', 'check'],
  commands: { init, check },
})

const init = command({
  summary: 'write the files of one way of deploying',
  description:
    'Write the files of one way of deploying. The first lines of each say how to use it. Nothing is overwritten: a file that is there stays as it is.',
  exits:
    '0 written, or there already; 1 a file that is there differs; 2 a file cannot be written, or the definition names files that cannot be deployed.',
  examples: ['systemd', 'kubernetes --out manifests'],
  document: 'deploy init',
  inputs: { '<target>': choice('the way of deploying', NAMES, { kind: 'target' }), ...OUT },
  async run(context, { target: name, out }) {
    const target = TARGETS[name]
    const planned = filesFor(context, out)(target)
    const files = planned.map(({ file, text }) => compared(context, file, text, 'written'))
    const absent = files.filter(({ state }) => state === 'written')
    const named = absent.map(({ file, text }) => ({ file: path.relative(context.cwd, file), text }))
    writeNewFiles(context.cwd, named)
    const differs = files.some(({ state }) => state === 'differs')
    const first = files.find(({ file }) => path.basename(file) === target.first)?.file ?? ''
    const next = differs ? '' : `Next: follow the first lines of ${shown(context, first)}.\n`
    const { json, text } = answerOf(context, files, out)
    return { json, text: text + next, exit: differs ? EXIT.failed : EXIT.passed }
  },
})

const check = command({
  summary: 'show which files differ from what init would write',
  description:
    'Compare the files that are there with what init would write now: after a change of the definition or an upgrade of platformctl.',
  exits: '0 all the same, 1 a file differs or is missing, 2 there are no files to check.',
  examples: ['', '--out /etc/systemd/system', '--print deploy/compose.yaml | diff deploy/compose.yaml -'],
  document: 'deploy check',
  inputs: { ...OUT, '--print <file>': 'print what init would write into this file, to compare or to copy' },
  async run(context, { out, print }) {
    const filesOf = filesFor(context, out)
    const planned = new Map<string, string>()
    const wanted = new Map<string, string>()
    for (const target of Object.values(TARGETS)) {
      const own = filesOf(target).filter(({ file }) => !planned.has(file))
      const isUsed = own.some(({ file, optional }) => !optional && existsSync(file))
      for (const { file, text, optional } of own) {
        planned.set(file, text)
        if (optional ? existsSync(file) : isUsed) wanted.set(file, text)
      }
    }
    if (print !== undefined) {
      const text = planned.get(path.resolve(context.cwd, print))
      if (text !== undefined) return text
      const names = [...planned.keys()].map((file) => shown(context, file))
      throw wrongUsage(`${print} is not one of these files: ${names.join(', ')}.`)
    }
    if (wanted.size === 0)
      throw wrongUsage(
        `there are no files to check${out === undefined ? '' : ` in ${out}`}: ${programName(context.env)} deploy init writes them, and --out names another folder.`,
      )
    const files = [...wanted].map(([file, text]) => compared(context, file, text, 'missing'))
    const exit = files.every(({ state }) => state === 'same') ? EXIT.passed : EXIT.failed
    return { ...answerOf(context, files, out), exit }
  },
})

/** Gives the files of a target, each with its absolute path. */
function filesFor({ cwd, platform }: Context, out: string | undefined) {
  const source = platform.definition === undefined ? cwd : path.dirname(platform.definition.file)
  const subject = readSubject(platform, source)
  const slashed = (name: string) => name.replaceAll(path.sep, '/')
  return (target: Target) => {
    const folder = out === undefined ? path.join(source, target.folder) : path.resolve(cwd, out)
    const [from, up] = [slashed(path.relative(source, folder)), slashed(path.relative(folder, source))]
    if (/\p{Cc}/u.test(from)) throw wrongUsage('--out holds control characters: choose another folder.')
    return target
      .files(subject, { folder: from && `${from}/`, up })
      .map(({ path: name, ...file }) => ({ ...file, file: path.join(folder, name) }))
  }
}

function compared<Absent extends string>(context: Context, file: string, text: string, absent: Absent) {
  let state: Absent | 'same' | 'differs' = absent
  try {
    state = readFileSync(file, 'utf8') === text ? 'same' : 'differs'
  } catch (error) {
    const code = codeOf(error)
    const why = `cannot read ${shown(context, file)} (${code}): move it away, or check who owns it.`
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw wrongUsage(why)
  }
  return { file, text, state }
}

function answerOf<State extends string>(
  context: Context,
  files: readonly { readonly file: string; readonly state: State }[],
  out: string | undefined,
) {
  const { platform, cwd, env } = context
  const source = platform.definition?.file
  const found = path.join(cwd, attempt(() => findDefinition(cwd)) ?? '')
  const words = compact(
    `${programName(env)} deploy check`,
    source !== undefined && source !== found && `--config ${shellWord(source)}`,
    out !== undefined && `--out ${shellWord(out)}`,
  )
  const lines = files.flatMap(({ file, state }) => {
    const name = shown(context, file)
    const compare = `${words.join(' ')} --print ${shellWord(name)} | diff ${shellWord(name)} -`
    return [`${state.padEnd(7)}  ${name}`, ...(state === 'differs' ? [`         ${compare}`] : [])]
  })
  const json = { files: files.map(({ file, state }) => ({ file, state })) }
  return { json, text: `${[whichPlatform(context), ...lines].join('\n')}\n` }
}

/** A path as it would be typed in the working directory. */
function shown({ cwd }: Context, file: string): string {
  const name = path.relative(cwd, file)
  return name.startsWith('..') ? file : name
}
