import type { Origin } from '../../core/env/validate.ts'
import type { Finding } from '../../core/finding.ts'
import { type Context, loadPaint } from '../context.ts'
import type { DocumentOf } from '../documents/documents.ts'
import { fileFinding } from '../environment.ts'
import { jsonText } from './text.ts'

export type Verified = Omit<DocumentOf<'env verify'>, 'version'>
export type Replica = Verified['replicas'][number]

export async function verifiedDocument(
  context: Context,
  format: 'text' | 'json' | 'github' | 'sarif',
  verified: Verified,
  origin: Origin,
  files: readonly string[],
): Promise<string> {
  if (format === 'json') return jsonText({ version: 1, ...verified } satisfies DocumentOf<'env verify'>)
  if (format === 'text') return verifiedText(context, verified)
  const { githubText, sarifText } = await import('./annotations.ts')
  const findings = findingsOf(context, verified, origin)
  return format === 'github' ? githubText(findings) : sarifText(context, findings, files)
}

const VARIABLE = {
  differs: 'runs with another value',
  missing: 'runs without it',
  extra: 'runs with it, and the file does not set it',
} as const

function definitionText({ definition, older }: Replica): string {
  if (definition === 'not compared')
    return 'runs a platform whose definition was not found here, so the two were not compared'
  const what = definition === 'differs' ? 'definition' : 'mails or lessons'
  return `runs ${definition === 'differs' ? (older ? 'an older' : 'another') : older ? 'older' : 'other'} ${what} than this folder has`
}

interface Difference {
  readonly id: string
  readonly fails: boolean
  readonly says: string
  readonly variable?: string
}

function differencesOf(replica: Replica): readonly Difference[] {
  const { reason, definition = 'same', changedFiles = [], variables = [] } = replica
  const found: Difference[] = []
  if (reason !== undefined) found.push({ id: 'unreached', fails: true, says: `was not compared: ${reason}` })
  if (definition !== 'same')
    found.push({ id: 'definition', fails: definition !== 'not compared', says: definitionText(replica) })
  for (const file of changedFiles)
    found.push({ id: 'file-changed', fails: false, says: `started before ${file} was changed` })
  for (const { name: variable, state, perReplica } of variables)
    if (state !== 'same') found.push({ id: state, fails: !perReplica, says: VARIABLE[state], variable })
  return found
}

const DEPLOY =
  'Correct the file or the folder if they are wrong; otherwise deploy them and restart the service.'
const FIXES: Readonly<Record<string, string>> = {
  unreached: 'Check that it runs, and its address and token.',
  'file-changed': 'Restart the service if the change is wanted.',
}

export function findingsOf({ platform }: Context, verified: Verified, origin: Origin): readonly Finding[] {
  const placed = (variable: string) => ({
    group: platform.contract.find(variable)?.group ?? 'file',
    present: [variable],
    ...origin(variable),
  })
  const ofReplicas = verified.replicas.flatMap((replica) =>
    differencesOf(replica).map(({ id, fails, says, variable }) =>
      fileFinding({
        id: `configuration-${id}`,
        severity: fails ? 'error' : 'warning',
        services: [replica.service],
        cause: `${variable === undefined ? '' : `${variable}: `}${replica.service} at ${replica.url} ${says}.`,
        fix: FIXES[id] ?? DEPLOY,
        ...(variable !== undefined && placed(variable)),
      }),
    ),
  )
  const ofNames = verified.disagreements.map((name) =>
    fileFinding({
      id: 'configuration-replicas',
      severity: 'error',
      services: platform.contract.find(name)?.services ?? [],
      cause: `${name}: replicas run with different values.`,
      fix: DEPLOY,
      ...placed(name),
    }),
  )
  return [...ofReplicas, ...ofNames]
}

async function verifiedText(context: Context, { replicas, disagreements, notCompared }: Verified) {
  const paint = await loadPaint(context.colour.stdout)
  const lines = replicas.flatMap((replica) => {
    const { service, url, state, variables = [], startedAt, build } = replica
    const same = variables.filter((variable) => variable.state === 'same').length
    const colour = state === 'same' ? paint.green : paint.red
    const running = `  ${same} of ${variables.length} variables the same  running since ${startedAt}`
    const facts = startedAt === undefined ? '' : `${running}${build ? `  build ${build}` : ''}`
    return [
      `${colour(paint.bold(state))}  ${service}  ${url}${paint.dim(facts)}`,
      ...differencesOf(replica).map(({ id, variable, says, fails }) => {
        const may = fails ? '' : paint.dim(', as it may on each replica')
        return `  ${variable === undefined ? says : `${id.padEnd(7)}  ${variable.padEnd(32)}  ${says}${may}`}`
      }),
    ]
  })
  if (disagreements.length > 0) lines.push(`Replicas disagree on ${disagreements.join(', ')}.`)
  if (notCompared > 0)
    lines.push(`Not compared: names in the file that this platform does not have (${notCompared}).`)
  return `${lines.join('\n')}\n`
}
