import { hasBasicPassword, hasBearer } from '../../core/access/identity.ts'
import { isPublic } from '../../core/course/definition.ts'
import { NOTICES } from '../../core/course/notices.ts'
import { PlatformError } from '../../core/errors.ts'
import { prerequisitesOf } from '../../core/incidents/prerequisites.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import type { Messages } from '../../core/messages/en.ts'
import { readPackageFile } from '../../core/package-files.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { type CurrentState, type Summary, summarise } from '../../core/status/summary.ts'
import type { Labels } from '../../core/status/words.ts'
import { errorResponse } from '../http/problem.ts'
import { htmlResponse, jsonResponse, svgResponse, textResponse } from '../http/respond.ts'
import type { RouteHandler, RouteRequest } from '../http/route.ts'
import type { Frame } from '../pages/layout.ts'
import { subscribeForm } from '../pages/pages.ts'
import { statusJson } from '../pages/status/answer.ts'
import { incidentFeed } from '../pages/status/feed.ts'
import { type StatusPageInput, statusPage } from '../pages/status/page.ts'
import type { Parts } from '../parts.ts'
import { meaningOf, targetOf } from '../status.ts'

/** White text on each reads at 4.5:1 or more. */
const COLOUR: Readonly<Record<CurrentState, string>> = {
  ok: '#1e7a46',
  degraded: '#8a5a00',
  failing: '#b3261e',
  skipped: '#565c6b',
  unknown: '#565c6b',
}
/** Mean width of a letter of the font at 11 px; `textLength` makes the drawing keep to it everywhere. */
const LETTER = 6.4

/** The verdict as a picture for a README: the word says the state, the colour only repeats it. */
export function badge({ status }: Messages, service: string | undefined, state: CurrentState): string {
  const [label, message] = [escapeHtml(service ?? status.badge.label), status.badge[state]]
  const [left, right] = [label, message].map((text) => Math.round(text.length * LETTER) + 14) as [
    number,
    number,
  ]
  const text = (words: string, from: number, width: number) =>
    `<text x="${from + width / 2}" y="14" textLength="${width - 14}" lengthAdjust="spacingAndGlyphs">${words}</text>`
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${message}"><title>${label}: ${message}</title><clipPath id="c"><rect width="${left + right}" height="20" rx="4"/></clipPath><g clip-path="url(#c)"><path fill="#3a3f4a" d="M0 0h${left}v20H0z"/><path fill="${COLOUR[state]}" d="M${left} 0h${right}v20H${left}z"/></g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">${text(label, 0, left)}${text(message, left, right)}</g></svg>`
}

export type StatusNeeds = Pick<
  Parts,
  'status' | 'mailReport' | 'settings' | 'clock' | 'platform' | 'labels'
> & {
  /** The page of the course has the form to sign up. */
  readonly takesSubscribers: boolean
  /** Incidents are mailed to who subscribes to them. */
  readonly mailsIncidents: boolean
}

export function statusRoute(needs: StatusNeeds): RouteHandler {
  let script: Promise<string | undefined> | undefined
  return answer(needs, async (input, { requestId }) => {
    script ??= readPackageFile('dist/status.js').catch(() => undefined)
    return htmlResponse({ requestId, ...statusPage({ ...input, script: await script }) })
  })
}

/** Reads the record as it is now. */
function summaryReader({
  status,
  settings,
  clock,
  platform,
}: Pick<StatusNeeds, 'status' | 'settings' | 'clock' | 'platform'>) {
  const prerequisites = prerequisitesOf(platform, settings)
  return async () => {
    const at = clock.now()
    return summarise(await status.read(at), at, platform.contract.services, prerequisites)
  }
}

export function statusFeedRoute(parts: Parts): RouteHandler {
  const { settings, platform, labels } = parts
  const read = summaryReader(parts)
  return async ({ requestId }) => {
    const summary = await read()
    const feed = incidentFeed({ summary, labels, name: platform.name, origin: settings.site.siteUrl })
    return textResponse(feed, { requestId, type: 'application/atom+xml; charset=utf-8' })
  }
}

export function statusJsonRoute(needs: StatusNeeds): RouteHandler {
  return answer(needs, (input, asked) => jsonResponse(statusJson(input), asked))
}

/** `?service=api` for one service; without it, the platform. */
export function badgeRoute(parts: Parts): RouteHandler {
  const { platform, labels } = parts
  const read = summaryReader(parts)
  const names = platform.contract.services
  return async ({ url, requestId }) => {
    const service = url.searchParams.get('service')
    if (service !== null && !labels.isService(service))
      throw new PlatformError('bad_request', 'The request does not have the documented form.', {
        issues: [{ path: 'service', message: alternatives(names) }],
      })
    const summary = await read()
    const state =
      service === null
        ? summary.state
        : (summary.services.find((one) => one.service === service)?.whole.state ?? 'unknown')
    return svgResponse(
      badge(labels.messages, service === null ? undefined : labels.service(service), state),
      { requestId },
    )
  }
}

/**
 * Reasons and addresses require the health token: programs send it as a bearer token, and people as the password that
 * the browser asks for on `?details`.
 */
function answer(
  needs: StatusNeeds,
  respond: (input: StatusPageInput, asked: RouteRequest) => Response | Promise<Response>,
): RouteHandler {
  const { mailReport, settings, platform, takesSubscribers, mailsIncidents } = needs
  const read = summaryReader(needs)
  const token = settings.health.deepToken
  return async (asked) => {
    const { request, url } = asked
    const allowed = hasBearer(request, token) || hasBasicPassword(request, token)
    if (allowed) asked.passed()
    const wants =
      url.searchParams.has('details') || /^Bearer /i.test(request.headers.get('authorization') ?? '')
    if (wants && !allowed) {
      const fix =
        token === undefined ? 'set HEALTH_DEEP_TOKEN first' : 'as a bearer token, or as the password'
      return errorResponse(
        new PlatformError(
          'unauthenticated',
          `Reasons and addresses are for operators and require the health token: ${fix}.`,
        ),
        asked,
        // Alone: Chromium asks for no password when the field names another scheme too.
        token !== undefined && asked.wantsHtml
          ? { 'WWW-Authenticate': 'Basic realm="status", charset="UTF-8"' }
          : {},
      )
    }
    const input = inputOf(needs, await read(), asked.frame)
    return respond(
      {
        ...input,
        signUp: takesSubscribers ? subscribeForm({ frame: asked.frame, course: undefined }) : undefined,
        signUpForNotices: mailsIncidents ? subscribeForm({ frame: asked.frame, course: NOTICES }) : undefined,
        // A browser goes on sending the password: the page without `?details` stays the public one.
        details: wants
          ? {
              targetOf: (probe) => targetOf(platform, settings, probe),
              // The page must work during an outage, so leave out what the store cannot give.
              mail: await mailReport().catch(() => undefined),
            }
          : undefined,
        detailsLink: token === undefined || input.recorded === 'none' ? undefined : '/?details',
      },
      asked,
    )
  }
}

/** The public page, without forms and scripts. */
function inputOf(
  { status, platform, settings, labels }: Pick<StatusNeeds, 'status' | 'platform' | 'settings' | 'labels'>,
  summary: Summary,
  frame: Frame,
): StatusPageInput {
  const isRecorded = summary.services.length > 0
  const absent = isRecorded ? offProbes(summary) : absentGroups(platform, settings)
  return {
    summary,
    labels,
    frame,
    invitation: invitationOf(platform, labels),
    signUp: undefined,
    signUpForNotices: undefined,
    recorded: status.recorded === 'none' && isRecorded ? 'file' : status.recorded,
    sampleUntil: status.sampleUntil,
    off: missedByVisitors(absent, platform, labels),
    notConfigured: notConfigured(absent, platform, labels),
    script: undefined,
    details: undefined,
    detailsLink: undefined,
  }
}

/** All that visitors can see of the status, for a witness to keep; `facts` changes when what happened does. */
export async function statusForVisitors(needs: StatusNeeds, frame: Frame) {
  const { labels, platform, settings } = needs
  const summary = await summaryReader(needs)()
  const input = inputOf(needs, summary, frame)
  const { incidents, announcements, state } = summary
  return {
    html: statusPage(input).html,
    kept: escapeHtml(labels.messages.status.kept),
    json: JSON.stringify(statusJson(input)),
    atom: incidentFeed({ summary, labels, name: platform.name, origin: settings.site.siteUrl }),
    badge: badge(labels.messages, undefined, state),
    badgeUnreachable: badge(labels.messages, undefined, 'failing'),
    facts: JSON.stringify([
      state,
      announcements,
      incidents.map(({ beganAt, endedAt }) => [beganAt, endedAt]),
    ]),
  }
}

function offProbes({ services }: ReturnType<typeof summarise>): string[] {
  return services.flatMap(({ probes }) =>
    probes.filter(({ state }) => state === 'skipped').map(({ probe }) => probe),
  )
}

/** Without a record, what the configuration alone says of the groups that have probes. */
function absentGroups({ contract, probes }: ResolvedPlatform, { groups }: Parts['settings']): string[] {
  const probed = new Set(probes.map(({ group }) => group))
  return contract.groups.flatMap(({ name }) =>
    probed.has(name) && groups.get(name) === 'absent' ? [name] : [],
  )
}

/** Description of the course: in the platform's own words, or by its title. */
function invitationOf(
  { texts, courses: [course] }: ResolvedPlatform,
  { messages }: Labels,
): string | undefined {
  return (
    texts.invitation ??
    (course &&
      messages.course.invitation(escapeHtml(course.title), course.lessons.length) +
        (isPublic(course) ? messages.course.readFirst : ''))
  )
}

/** Sentences for visitors about absent groups, each once. */
function missedByVisitors(
  names: readonly string[],
  { probes, contract }: ResolvedPlatform,
  labels: Labels,
): string[] {
  const sentences = names.flatMap((name) => {
    const group = probes.find((probe) => probe.name === name)?.group ?? name
    const own = contract.group(group)?.visitors
    return own === undefined ? [] : [labels.messages.status.visitors[group] ?? own]
  })
  return [...new Set(sentences)]
}

/** One row for all that has the same consequence. */
function notConfigured(
  names: readonly string[],
  platform: ResolvedPlatform,
  labels: Labels,
): StatusPageInput['notConfigured'] {
  const byMeaning = Map.groupBy(new Set(names), (name) => meaningOf(platform, name, labels.messages))
  return [...byMeaning].map(([means, probes]) => ({ name: probes.map(labels.probe).join(', '), means }))
}

function alternatives(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}
