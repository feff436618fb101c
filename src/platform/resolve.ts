import { parseDuration } from '../core/env/quantities.ts'
import { neighbourProbe } from '../core/health/engine-probes.ts'
import { compiledOnce } from '../core/mail/compiled.ts'
import type { MailAsk, MailDefinition, MailSet } from '../core/mail/definition.ts'
import type { CompiledMails } from '../core/mail/template.ts'
import { withName } from '../core/mail/with-name.ts'
import type { Brand, Platform } from '../core/platform.ts'
import { type HealthFormat, type ServiceDefinition, WEB } from '../core/service.ts'
import { contractOf, presetOf, soundDefinition } from './contract.ts'
import type { PlatformDefinition, ServiceInput, TemplateInput } from './definition.ts'
import { DefinitionError } from './definition-error.ts'
import { type DefinitionFiles, readDefinitionFiles } from './files.ts'
import { ownProbe } from './own-probe.ts'

const DAY_MS = 86_400_000

/** Makes the platform of a definition: checked as a whole, so that nothing of a faulty one is applied. */
export function resolvePlatform(
  exported: unknown,
  { folder, file }: { readonly folder: string; readonly file?: string },
): Platform {
  const definition = soundDefinition(exported, file)
  const files = readDefinitionFiles(definition, definition.folder ?? folder)
  if (files.faults.length > 0) throw new DefinitionError(file, files.faults)
  const preset = presetOf(definition).platform
  const services = servicesOf(definition, preset)
  return {
    name: definition.name ?? preset.name,
    brand: brandOf(definition, files) ?? preset.brand,
    language: definition.brand?.language ?? preset.language,
    contract: contractOf(definition),
    services,
    probes: probesOf(definition, preset, services),
    mails: mailsOf(definition, preset, files),
    courses: [
      ...preset.courses,
      ...Object.entries(definition.courses ?? {}).map(([id, { title = id, every }]) => ({
        id,
        title,
        lessons: (files.lessons.get(id) ?? []).map((lesson) => lessonName(id, lesson)),
        everyMs: (every === undefined ? undefined : parseDuration(every)) ?? DAY_MS,
      })),
    ],
    events: [
      ...preset.events,
      ...Object.entries(definition.events ?? {}).map(([name, properties]) => ({ name, properties })),
    ],
    insights: preset.insights,
    texts: preset.texts,
  }
}

/** The template of a lesson: two courses may both have a lesson 1. */
function lessonName(course: string, lesson: string): string {
  return `${course}-${lesson}`
}

/** The preset's mails and the definition's own; a template in its folder replaces that of the preset. */
function mailsOf(definition: PlatformDefinition, preset: Platform, files: DefinitionFiles): MailSet {
  const { templates = {}, name = preset.name } = definition
  const named = (load: () => Promise<CompiledMails>) => compiledOnce(async () => withName(await load(), name))
  const known = preset.mails.definitions.map((mail) => mail.name)
  const own = [...new Set([...files.templates, ...Object.keys(templates)])].filter(
    (one) => !known.includes(one),
  )
  const lessons = [...files.lessons].flatMap(([course, names]) => {
    const folder = { path: files.lessonFolders.get(course) ?? '' }
    return names.map((file) => ({ name: lessonName(course, file), lesson: true, folder, file }))
  })
  const definitions = [
    ...preset.mails.definitions.map((mail) => {
      const input = templates[mail.name]
      return input === undefined ? mail : { ...mail, ...ownMail(mail.name, input) }
    }),
    ...own.map((one) => ownMail(one, templates[one] ?? {})),
    ...lessons,
  ]
  const folders = [...(files.mails === undefined ? [] : [{ path: files.mails }]), ...preset.mails.folders]
  const build = files.mails ?? [...files.lessonFolders.values()][0]
  if (build === undefined) return { ...preset.mails, compiled: named(preset.mails.compiled) }
  const load = async () =>
    (await import('../core/mail/folder-mails.ts')).compiledFolder({ definitions, folders }, build)
  return { definitions, folders, build, compiled: named(load) }
}

function ownMail(name: string, { slots, by, inputs = [], resolve }: TemplateInput): MailDefinition {
  // Checked with the definition: whoever may ask, there is a function that answers.
  const ask = by && resolve && ({ by, inputs, resolve } as MailAsk)
  return { name, ...(slots && { slots }), ...(ask && { ask }) }
}

function brandOf({ brand }: PlatformDefinition, { logo }: DefinitionFiles): Brand | undefined {
  if (brand?.color === undefined && logo === undefined) return undefined
  return { color: brand?.color ?? '#1d4ed8', ...(logo !== undefined && { logo }) }
}

/** Where each format's health is, when the definition does not say. */
const HEALTH_PATHS: Readonly<Record<HealthFormat, string>> = {
  platformctl: '/api/health',
  'health+json': '/health',
  spring: '/actuator/health',
  aspnet: '/health',
  status: '/health',
}

function servicesOf({ services }: PlatformDefinition, preset: Platform): readonly ServiceDefinition[] {
  if (services === undefined) return preset.services
  return Object.entries(services).map(([name, service]) =>
    serviceOf(
      name,
      service,
      preset.services.find((one) => one.name === name),
    ),
  )
}

function serviceOf(
  name: string,
  input: ServiceInput,
  known: ServiceDefinition | undefined,
): ServiceDefinition {
  const { address, health, format, label } = input
  const addresses = address === undefined ? known?.address : typeof address === 'string' ? [address] : address
  const port = format === undefined ? (input.port ?? known?.port) : undefined
  return {
    ...known,
    name,
    health: health ?? known?.health ?? HEALTH_PATHS[format ?? 'platformctl'],
    ...(addresses !== undefined && { address: addresses }),
    ...(format !== undefined && { format }),
    ...(label !== undefined && { label }),
    ...(port !== undefined && { port }),
  }
}

/** The preset's probes of what is still there, the other services, and the definition's own. */
function probesOf(
  definition: PlatformDefinition,
  preset: Platform,
  services: readonly ServiceDefinition[],
): Platform['probes'] {
  const { without = [], probes = {} } = definition
  const names = services.map(({ name }) => name)
  const gone = preset.services.map(({ name }) => name).filter((name) => !names.includes(name))
  const kept = preset.probes.filter(
    ({ name, service, group }) =>
      names.includes(service) && !(group !== undefined && without.includes(group)) && !gone.includes(name),
  )
  const known = new Set(kept.filter(({ service }) => service === WEB).map(({ name }) => name))
  const neighbours = services
    .filter(({ name, address }) => name !== WEB && address !== undefined && !known.has(name))
    .map((service) => neighbourProbe(service))
  return [...kept, ...neighbours, ...Object.entries(probes).map(([name, probe]) => ownProbe(name, probe))]
}
