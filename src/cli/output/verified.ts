import packageJson from '../../../package.json' with { type: 'json' }
import type { Origin } from '../../core/env/validate.ts'
import type { Finding } from '../../core/finding.ts'
import type { Context } from '../context.ts'
import type { DocumentOf } from '../documents/documents.ts'
import { loadPaint } from '../terminal.ts'
import { jsonText } from './text.ts'

export type Verified = Omit<DocumentOf<'env verify'>, 'version'>
export type Replica = Verified['replicas'][number]

/** Writes what `env verify` found. */
export async function writeVerified(
  context: Context,
  format: 'text' | 'json' | 'github' | 'sarif',
  { verified, origin }: { readonly verified: Verified; readonly origin: Origin },
): Promise<void> {
  if (format === 'json')
    context.stdout.write(jsonText({ version: 1, ...verified } satisfies DocumentOf<'env verify'>))
  else if (format === 'text') context.stdout.write(await verifiedText(context, verified))
  else {
    const findings = findingsOf(context, verified, origin)
    context.stdout.write(
      format === 'github'
        ? (await import('./annotations.ts')).githubText(findings)
        : (await import('./annotations.ts')).sarifText(findings, packageJson.version),
    )
  }
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

function differencesOf(input: Replica): readonly Difference[] {
  const { reason, definition = 'same', changedFiles = [], variables = [] } = input
  return [
    ...(reason === undefined
      ? []
      : [{ id: 'configuration-unreached', fails: true, says: `was not compared: ${reason}` }]),
    ...(definition === 'same'
      ? []
      : [
          {
            id: 'configuration-definition',
            fails: definition !== 'not compared',
            says: definitionText(input),
          },
        ]),
    ...changedFiles.map((file) => ({
      id: 'configuration-file-changed',
      fails: false,
      says: `started before ${file} was changed`,
    })),
    ...variables.flatMap(({ name, state, perReplica }) =>
      state === 'same'
        ? []
        : [{ id: `configuration-${state}`, fails: !perReplica, says: VARIABLE[state], variable: name }],
    ),
  ]
}

const DEPLOY =
  'Correct the file or the folder if they are wrong; otherwise deploy them and restart the service.'
const FIXES: Readonly<Record<string, string>> = {
  'configuration-unreached': 'Check that it runs, and its address and token.',
  'configuration-file-changed': 'Restart the service if the change is wanted.',
}

/** A finding for each difference. */
export function findingsOf({ platform }: Context, verified: Verified, origin: Origin): readonly Finding[] {
  const common = { missing: [], fix: DEPLOY }
  return [
    ...verified.replicas.flatMap((replica) =>
      differencesOf(replica).map(({ id, fails, says, variable }): Finding => {
        const { service, url } = replica
        return {
          ...common,
          fix: FIXES[id] ?? DEPLOY,
          id,
          severity: fails ? 'error' : 'warning',
          services: [service],
          group: (variable && platform.contract.find(variable)?.group) || 'file',
          present: variable === undefined ? [] : [variable],
          cause: `${variable === undefined ? '' : `${variable}: `}${service} at ${url} ${says}.`,
          ...(variable !== undefined && origin(variable)),
        }
      }),
    ),
    ...verified.disagreements.map(
      (name): Finding => ({
        ...common,
        id: 'configuration-replicas',
        severity: 'error',
        services: platform.contract.find(name)?.services ?? [],
        group: platform.contract.find(name)?.group ?? 'file',
        present: [name],
        cause: `${name}: replicas run with different values.`,
        ...origin(name),
      }),
    ),
  ]
}

async function verifiedText(
  context: Context,
  { replicas, disagreements, notCompared }: Verified,
): Promise<string> {
  const paint = await loadPaint(context.colour.stdout)
  const lines = replicas.flatMap((replica) => {
    const { service, url, state, variables = [], startedAt, build } = replica
    const same = variables.filter((variable) => variable.state === 'same').length
    const colour = state === 'same' ? paint.green : paint.red
    const facts =
      startedAt === undefined
        ? []
        : [
            `${same} of ${variables.length} variables the same`,
            `running since ${startedAt}`,
            ...(build ? [`build ${build}`] : []),
          ]
    return [
      `${colour(paint.bold(state))}  ${service}  ${url}${paint.dim(facts.map((fact) => `  ${fact}`).join(''))}`,
      ...differencesOf(replica).map(({ id, variable, says, fails }) =>
        variable === undefined
          ? `  ${says}`
          : `  ${id.replace('configuration-', '').padEnd(7)}  ${variable.padEnd(32)}  ${says}${fails ? '' : paint.dim(', as it may on each replica')}`,
      ),
    ]
  })
  if (disagreements.length > 0) lines.push(`Replicas disagree on ${disagreements.join(', ')}.`)
  if (notCompared > 0)
    lines.push(`Not compared: names in the file that this platform does not have (${notCompared}).`)
  return `${lines.join('\n')}\n`
}
