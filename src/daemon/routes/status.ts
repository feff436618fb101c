import { hasBasicPassword, hasBearer } from '../../core/access/identity.ts'
import { once } from '../../core/calls.ts'
import { isPublic, NOTICES } from '../../core/course/definition.ts'
import { PlatformError } from '../../core/errors.ts'
import { prerequisitesOf } from '../../core/incidents/prerequisites.ts'
import { escapeHtml } from '../../core/mail/template.ts'
import { readPackageFile } from '../../core/package-files.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { WEB } from '../../core/service.ts'
import { type Summary, summarise } from '../../core/status/summary.ts'
import { createLabels, incidentKey, type Labels } from '../../core/status/words.ts'
import type { StatusContent } from '../../core/witness.ts'
import type { App } from '../app.ts'
import type { RouteContext } from '../http/context.ts'
import { errorResponse } from '../http/problem.ts'
import { htmlResponse } from '../http/respond.ts'
import { defineRoute, refusal, type Site, text } from '../http/route.ts'
import { type Frame, frameOf } from '../pages/layout.ts'
import { subscribeForm } from '../pages/pages.ts'
import { statusJson } from '../pages/status/answer.ts'
import { announcementCalendar, incidentFeed } from '../pages/status/feed.ts'
import { incidentPage, incidentsPage, type StatusPageInput, statusPage } from '../pages/status/page.ts'
import { badge } from '../pages/status/pictures.ts'
import { meaningOf, targetOf } from '../status.ts'

/** What the page and its JSON have in common. */
export const RECORDED = {
  tag: 'Pages',
  description:
    'It shows what the daemon recorded in the last minute, and checks nothing itself. With the health token it also shows reasons and addresses; a browser asks for the token as a password on `?details`.',
  security: 'deepToken',
  securityOptional: true,
  errors: ['store_unavailable'],
} as const

export const route = () =>
  defineRoute({
    ...RECORDED,
    summary: 'The start page: what works, what is not configured, and what that means',
    answers: [text('text/html', 'The recorded status of the platform.')],
    errorTexts: ({ operatorsOnly }) => ({ unauthenticated: operatorsOnly }),
    handle: (site) =>
      answerStatus(site, async (input) =>
        htmlResponse(statusPage({ ...input, script: await statusScript() })),
      ),
  })

/** The script of all status pages; undefined where it is not built. */
export const statusScript = once(() => readPackageFile('dist/status.js').catch(() => undefined))

export function summaryReader({ status, settings, clock, platform }: App): () => Promise<Summary> {
  const prerequisites = prerequisitesOf(platform, settings)
  return async () => {
    const at = clock.now()
    return summarise(await status.read(at), at, platform.contract.services, prerequisites)
  }
}

/** Reasons and addresses require the health token: as a bearer token, or as the password asked for on `?details`. */
export function answerStatus<Value>(site: Site, respond: (input: StatusPageInput) => Value | Promise<Value>) {
  const { mailReport, settings, platform } = site
  const read = summaryReader(site)
  const token = settings.health.deepToken
  return async (c: RouteContext) => {
    const { request, frame } = c
    const allowed = hasBearer(request, token) || hasBasicPassword(request, token)
    if (allowed) c.passed()
    const wants =
      c.query('details') !== undefined || /^Bearer /i.test(request.headers.get('authorization') ?? '')
    if (wants && !allowed) {
      const needs = 'Reasons and addresses are for operators and require the health token'
      if (token === undefined)
        throw new PlatformError('unauthenticated', `${needs}: set HEALTH_DEEP_TOKEN first.`)
      // Alone: Chromium asks for no password when the field names another scheme too.
      const basic = { 'WWW-Authenticate': 'Basic realm="status", charset="UTF-8"' }
      const error = refusal(site, c, 'health', `${needs}: as a bearer token, or as the password.`)
      return errorResponse(error, c, c.wantsHtml ? basic : {})
    }
    const input = inputOf(site, await read(), frame)
    return respond({
      ...input,
      // A browser goes on sending the password: the page without `?details` stays the public one.
      details: wants
        ? {
            targetOf: (probe) => targetOf(platform, settings, probe),
            // The page must work during an outage, so leave out what the store cannot give.
            mail: await mailReport().catch(() => undefined),
          }
        : undefined,
      detailsLink: token === undefined || input.recorded === 'none' ? undefined : '/?details',
    })
  }
}

export function inputOf(
  { status, platform, settings, takesSubscribers, mailsIncidents, replaced, ...app }: App,
  summary: Summary,
  frame: Frame,
): StatusPageInput {
  const { services } = summary
  const { contract, probes, texts } = platform
  const { language } = frame.messages
  // In the language of the page's reader.
  const labels =
    language === app.labels.messages.language ? app.labels : createLabels({ ...platform, language })
  const isRecorded = services.length > 0
  const probed = new Set(probes.map(({ group }) => group))
  const skipped = services.flatMap((one) =>
    one.probes.flatMap(({ state, probe }) => (state === 'skipped' ? probe : [])),
  )
  // The configuration tells the rest; of a group that no probe names, only if web reads it: other services may run elsewhere.
  const unrecorded = contract.groups.flatMap(({ name, visitors, variables }) => {
    const isKnown = probed.has(name)
      ? !isRecorded
      : visitors !== undefined && variables.some((one) => one.services.includes(WEB))
    return isKnown && settings.groups.get(name) === 'absent' ? name : []
  })
  const absent = [...skipped, ...unrecorded].filter((name) => !replaced.includes(name))
  const well = new Set(
    services.flatMap((one) => one.probes.flatMap(({ state, probe }) => (state === 'ok' ? probe : []))),
  )
  // A half-configured group is off too, unless its probe is ok: a program may have a mailer of its own.
  const off = contract.groups.flatMap(({ name }) =>
    settings.groups.get(name) !== 'half-configured' ||
    replaced.includes(name) ||
    probes.some((one) => one.group === name && well.has(one.name))
      ? []
      : name,
  )
  return {
    summary,
    labels,
    frame,
    home: '',
    invitation: texts.invitation ?? invitationOf(platform, labels),
    signUp: takesSubscribers && platform.courses.length > 0 ? subscribeForm(frame) : undefined,
    signUpForNotices: mailsIncidents ? subscribeForm(frame, NOTICES) : undefined,
    recorded: status.recorded === 'none' && isRecorded ? 'file' : status.recorded,
    sampleUntil: status.sampleUntil,
    off: missedByVisitors([...absent, ...off], platform, labels),
    notConfigured: notConfigured(absent, platform, labels),
  }
}

/** The newest incidents have pages of their own on another host. */
const PAGES_KEPT = 50

/** All that visitors can see, for a witness or a file server to show in place of the platform. Forms work on the platform alone. */
export async function keptStatus(app: App, known?: Summary): Promise<StatusContent> {
  const summary = known ?? (await summaryReader(app)())
  const frame = frameOf(app.platform, app.settings.site.siteUrl)
  const { name, siteUrl } = frame
  const shown = inputOf(app, summary, frame)
  const { labels } = shown
  const { messages } = labels
  const script = await statusScript()
  const input = { ...shown, script, home: siteUrl, signUp: undefined, signUpForNotices: undefined }
  const list = incidentsPage(input).html
  const pages = summary.incidents
    .slice(0, PAGES_KEPT)
    .map((one) => [`incidents/${incidentKey(one)}.html`, partsOf(incidentPage(input, one).html)] as const)
  const { title, main } = partsOf(list)
  return {
    html: statusPage(input).html,
    kept: escapeHtml(messages.status.kept),
    json: JSON.stringify(statusJson(input)),
    atom: incidentFeed(summary, labels, name, siteUrl),
    calendar: announcementCalendar(summary, labels, name, siteUrl),
    badge: badge(messages, undefined, summary.state),
    badgeUnreachable: badge(messages, undefined, 'failing'),
    incidents: {
      shell: list.replace(title, () => '{title}').replace(main, () => '{main}'),
      pages: { 'incidents/index.html': { title, main }, ...Object.fromEntries(pages) },
    },
  }
}

function partsOf(html: string) {
  const between = (start: string, end: string) =>
    html.slice(html.indexOf(start), html.indexOf(end) + end.length)
  return { title: between('<title>', '</title>'), main: between('<main', '</main>') }
}

function invitationOf({ courses: [course] }: ResolvedPlatform, { messages: { course: T } }: Labels) {
  return (
    course &&
    T.invitation(escapeHtml(course.title), course.lessons.length) + (isPublic(course) ? T.readFirst : '')
  )
}

/** Sentences for visitors about absent groups, each once. */
function missedByVisitors(names: readonly string[], { probes, contract }: ResolvedPlatform, labels: Labels) {
  const sentences = names.flatMap((name) => {
    const group = probes.find((probe) => probe.name === name)?.group ?? name
    const own = contract.group(group)?.visitors
    return own === undefined ? [] : [labels.messages.status.visitors[group] ?? own]
  })
  return [...new Set(sentences)]
}

/** One row for all that has the same consequence. */
function notConfigured(names: readonly string[], platform: ResolvedPlatform, labels: Labels) {
  const byMeaning = Map.groupBy(new Set(names), (name) => meaningOf(platform, name, labels.messages))
  return [...byMeaning].map(([means, probes]) => ({ name: probes.map(labels.probe).join(', '), means }))
}
