import path from 'node:path'
import { sampleEvents } from '../core/analytics/sample.ts'
import { once } from '../core/calls.ts'
import type { Cadence } from '../core/course/definition.ts'
import { DAY_MS } from '../core/durations.ts'
import { parseDuration } from '../core/env/values.ts'
import { given } from '../core/given.ts'
import { heartbeatProbe, neighbourProbe } from '../core/health/engine-probes.ts'
import type { HeartbeatDefinition } from '../core/heartbeats.ts'
import { isRecord } from '../core/is-record.ts'
import {
  LESSON_SLOTS,
  type MailAsk,
  type MailDefinition,
  type MailResolution,
  type MailSet,
  type MailTranslation,
  PAGELESS_SLOTS,
  translationName,
} from '../core/mail/definition.ts'
import { allWithBrand, mailBrand } from '../core/mail/template.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { type ServiceDefinition, WEB } from '../core/service.ts'
import { probesKept } from './check/names.ts'
import { checkedDefinition, contractOf, presetOf, servicesOf } from './contract.ts'
import {
  type CourseInput,
  type PlatformDefinition,
  type Resolve,
  type TemplateInput,
  WEEKDAYS,
} from './definition.ts'
import { type DefinitionFiles, fingerprintOf, lessonName, readDefinitionFiles } from './files.ts'
import { DefinitionError } from './find.ts'
import { ownProbe } from './own-probe.ts'

function ownMail(name: string, { slots, by, inputs = [], resolve }: TemplateInput): MailDefinition {
  // The context that the engine gives has everything that a definition's resolve may use.
  const ask = by && resolve && ({ by, inputs, resolve: checked(resolve) } as MailAsk)
  return { name, ...given({ slots, ask }) }
}

const WRONG: MailResolution = {
  answer: { kind: 'not_sent', reason: 'resolve of this template did not give { to, slots, about }' },
}

function checked(resolve: Resolve<Readonly<Record<string, string>>>) {
  return async (...asked: Parameters<typeof resolve>): Promise<MailResolution> => {
    const found: unknown = await resolve(...asked)
    if (found === undefined || found === null) return undefined
    if (!isRecord(found) || !isRecord(found.slots)) return WRONG
    const { to, about, slots } = found
    if (typeof to !== 'string' || typeof about !== 'string') return WRONG
    if (!Object.values(slots).every((value) => typeof value === 'string')) return WRONG
    // Each value was seen to be text.
    return { to, about, slots: slots as Record<string, string> }
  }
}

/** Makes the platform of a definition: checked as a whole, so that nothing of a faulty one is applied. */
export function resolvePlatform(
  exported: unknown,
  { folder, file }: { readonly folder: string; readonly file?: string },
): ResolvedPlatform {
  const definition = checkedDefinition(exported, file)
  const { confirmation, unsubscription, challenge, security, brand, folder: root = folder } = definition
  const files = readDefinitionFiles(definition, root, brand?.language ?? 'en')
  if (files.faults.length > 0) throw new DefinitionError(file, files.faults)
  const preset = presetOf(definition)
  const services = servicesOf(definition, preset)
  const heartbeats = heartbeatsOf(definition)
  const isBranded = [definition.name, brand?.color, files.logo].some((one) => one !== undefined)
  const events = [
    ...preset.events,
    ...Object.entries(definition.events ?? {}).map(([name, properties]) => ({ name, properties })),
  ].map((event) => ({ ...event, ...given({ label: definition.insights?.labels?.[event.name] }) }))
  return {
    name: definition.name ?? preset.name,
    ...(file !== undefined && {
      definition: {
        file: path.join(folder, path.basename(file)),
        fingerprint: () => fingerprintOf(definition, files.folders),
        lessons: () => fingerprintOf({}, files.folders),
        assets: [
          definition.mails,
          ...Object.values(definition.courses ?? {}).map(({ lessons }) => lessons),
          brand?.logo,
        ].flatMap((name) => (name === undefined ? [] : path.resolve(root, name))),
      },
    }),
    // A definition that says a name or a brand shows it on every page.
    brand: isBranded ? given({ color: brand?.color, logo: files.logo }) : preset.brand,
    language: brand?.language ?? preset.language,
    contract: contractOf(definition),
    services,
    probes: [...probesOf(definition, preset, services), ...heartbeats.map(heartbeatProbe)],
    mails: mailsOf(definition, preset, files),
    courses: [
      ...preset.courses,
      ...Object.entries(definition.courses ?? {}).map(([id, course]) => ({
        id,
        title: course.title ?? id,
        lessons: (files.lessons.get(id)?.names ?? []).map((lesson) => lessonName(id, lesson)),
        cadence: cadenceOf(course),
        spacingMs: parseDuration(course.spacing ?? '') ?? 0,
        follow: course.follow ?? ('start' as const),
        ...given({ pages: course.pages }),
      })),
    ],
    events,
    insights: {
      sample: (now) => sampleEvents(events, now),
      ...preset.insights,
      sections: [...preset.insights.sections, ...(definition.insights?.sections ?? [])],
    },
    heartbeats,
    texts: preset.texts,
    ...given({
      confirmation,
      unsubscription,
      challenge,
      security: security && { ...security, contact: [security.contact].flat() },
    }),
  }
}

function cadenceOf({ every, at, zone, on = [] }: CourseInput): Cadence {
  if (at === undefined) return { kind: 'every', ms: parseDuration(every ?? '') ?? DAY_MS }
  const [hours = 0, minutes = 0] = at.split(':').map(Number)
  return {
    kind: 'at',
    minute: hours * 60 + minutes,
    // UTC when the definition names none, so that a course never depends on the machine that sends it.
    zone: zone === 'subscriber' ? undefined : (zone ?? 'UTC'),
    weekdays: on.map((day) => WEEKDAYS.indexOf(day) + 1).sort((a, b) => a - b),
  }
}

/** Without a grace, a tenth of the time between two beats: no job runs at the same second every day. */
const GRACE = 0.1

function heartbeatsOf({ heartbeats = {} }: PlatformDefinition): readonly HeartbeatDefinition[] {
  return Object.entries(heartbeats).map(([name, { every, grace, label }]) => {
    const everyMs = parseDuration(every ?? '') ?? DAY_MS
    return { name, everyMs, graceMs: parseDuration(grace ?? '') ?? everyMs * GRACE, ...given({ label }) }
  })
}

/** The preset's mails and the definition's own; a template in its folder replaces that of the preset. */
function mailsOf(definition: PlatformDefinition, preset: ResolvedPlatform, files: DefinitionFiles): MailSet {
  const { templates = {}, name = preset.name, brand: { color, language = preset.language } = {} } = definition
  const brand = mailBrand(name, color)
  const { translations: shippedIn = [] } = preset.mails
  const own = shippedIn.find((one) => isIn(language, one.language))
  const others = shippedIn.filter((one) => one !== own)
  const shipped = new Map(preset.mails.definitions.map((mail) => [mail.name, mail]))
  const mails = new Set([...shipped.keys(), ...files.templates, ...Object.keys(templates)])
  const lessons = [...files.lessons].flatMap(([course, { folder: place, names }]) =>
    names.map((file) => ({
      name: lessonName(course, file),
      slots: definition.courses?.[course]?.pages === false ? PAGELESS_SLOTS : LESSON_SLOTS,
      lesson: true,
      folder: { path: place, language },
      file,
    })),
  )
  const originals: readonly MailDefinition[] = [
    ...[...mails].map((one) => ({ ...shipped.get(one), ...ownMail(one, templates[one] ?? {}) })),
    ...lessons,
  ]
  const definitions = [...originals, ...translationsOf(originals, preset, files, others)]
  const folders = [
    ...(files.mails === undefined ? [] : [{ path: files.mails, language }]),
    ...new Set([...(own ? [own.folder] : []), ...preset.mails.folders]),
  ]
  const build = files.folders[0]
  if (build === undefined) {
    const compiled = once(async () => {
      const all = { ...(await (own ?? preset.mails).compiled()) }
      for (const { language: tag, compiled: translated } of others)
        for (const [mail, made] of Object.entries(await translated())) all[translationName(tag, mail)] = made
      return allWithBrand(all, brand)
    })
    return { definitions, folders, brand, compiled }
  }
  const set = { definitions, folders, brand }
  // Loaded when first asked for: it needs node:crypto and node:fs/promises, which take 6 ms of a cold start.
  const texts = once(async () => (await import('../core/mail/folder-mails.ts')).readLessonTexts(set))
  const load = async () => {
    // Read now, so that texts and compiled mails are of the same files. Faults are the compiler's to report.
    void texts().catch(() => {})
    return (await import('../core/mail/folder-mails.ts')).compiledFolder(set, build)
  }
  return { ...set, build, texts, compiled: once(load) }
}

/** The mails in other languages than the platform's: those of its folders, else those that its preset ships. */
function translationsOf(
  originals: readonly MailDefinition[],
  preset: ResolvedPlatform,
  files: DefinitionFiles,
  others: readonly MailTranslation[],
): readonly MailDefinition[] {
  const { mails, translations } = files
  const { translations: shippedIn = [], definitions } = preset.mails
  const all = [...others, ...[...translations.values()].flat()]
  // A folder may be called `DE`.
  const tags = new Set(all.map(({ language }) => language.toLowerCase()))
  return [...tags].flatMap((tag) =>
    originals.flatMap((original): readonly MailDefinition[] => {
      const { name, file = name, folder: { path: place = mails } = {}, slots, allowance, lesson } = original
      const placeOf = (wanted?: string) =>
        translations.get(place ?? '')?.find(({ language }) => language.toLowerCase() === wanted)
      const [own, general] = [placeOf(tag), placeOf(tag.split('-')[0])]
      const isOwn = own?.names.includes(file)
      // `de` of one's own serves `de-AT` better than what is shipped.
      const isReplaced = files.templates.includes(name) || general?.names.includes(file)
      const isShipped = !isReplaced && definitions.some((mail) => mail.name === name)
      const shipped = shippedIn.find((one) => isShipped && isIn(tag, one.language))?.folder
      const folder = own && isOwn ? { path: own.folder, language: own.language } : shipped
      if (folder === undefined) return []
      const layouts = isOwn ? place : own?.folder
      return [
        {
          name: translationName(tag, name),
          translates: name,
          ...given({ slots, allowance, lesson }),
          folder,
          file,
          ...(layouts !== undefined && { layouts: [{ path: layouts }] }),
        },
      ]
    }),
  )
}

/** `de-AT` is in `de`. */
const isIn = (language: string, other: string) => language.toLowerCase().split('-')[0] === other

/** The preset's probes of what is still there, the other services, and the definition's own. */
function probesOf(
  { without = [], probes = {} }: PlatformDefinition,
  preset: ResolvedPlatform,
  services: readonly ServiceDefinition[],
): ResolvedPlatform['probes'] {
  const names = services.map(({ name }) => name)
  const kept = probesKept(preset, names, without)
  const own = Object.entries(probes).map(([name, probe]) => ownProbe(name, probe))
  const ofWeb = new Set([...kept, ...own].filter(({ service }) => service === WEB).map(({ name }) => name))
  // The preset has probes of its own services.
  const asked = new Set([WEB, ...preset.services.map(({ name }) => name)])
  const neighbours = services
    .filter(({ name, address }) => address !== undefined && !asked.has(name))
    .map((service) => neighbourProbe(service, { isNamesake: ofWeb.has(service.name) }))
  return [...kept, ...neighbours, ...own]
}
