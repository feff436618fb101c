import type { InsightsPageData } from '../../core/analytics/insights.ts'
import { once } from '../../core/calls.ts'
import { PlatformError } from '../../core/errors.ts'
import { escapeHtml } from '../../core/mail/template.ts'
import { readPackageFile } from '../../core/package-files.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { htmlResponse } from '../http/respond.ts'
import { defineRoute, text } from '../http/route.ts'
import { type Frame, type Page, page } from '../pages/layout.ts'

const CHOSEN_RANGE = '30'

/** The frame of /insights, the same for everybody; its script fills it from the browser's own storage. */
export function insightsPage(
  frame: Frame,
  script: string,
  style: string,
  { events, insights: { sections, sample } }: Pick<ResolvedPlatform, 'events' | 'insights'>,
): Page {
  const T = frame.messages.insights
  const ranges = (['7', '30', '90', ''] as const).map((value) => [value, T.ranges[value]] as const)
  const tiles = [
    ...Object.entries(T.tiles),
    ...sections.flatMap(({ id, tile }) => (tile ? [[`${id}-tile`, tile.label] as const] : [])),
  ]
  const figures = [['kinds', T.did], ...sections.map(({ id, heading }) => [id, heading] as const)] as const
  const carried: InsightsPageData = {
    sections,
    sample: sample?.(0) ?? [],
    events: events.map((event) => ({ label: T.kinds[event.name] ?? event.name, ...event })),
    texts: T.script,
    language: frame.messages.language,
  }
  return page(
    frame,
    T.title,
    `<h1>${T.title}</h1>
<p class="quiet lead">${T.lead}</p>
<noscript><div class="note"><p>${T.noScript}</p></div></noscript>
<div class="note" id="fresh" hidden><p>${T.fresh}</p><button type="button" id="show-sample">${T.showSample}</button></div>
<div class="note" id="sample" role="status" hidden><p><strong>${T.sampleTitle}</strong> ${T.sample}</p><button type="button" class="second" id="hide-sample">${T.hideSample}</button></div>
<form class="controls" aria-label="${T.controls}">
<div class="quiet"><label for="range">${T.range}</label><select id="range" autocomplete="off">${ranges.map(([value, text]) => `<option value="${value}"${value === CHOSEN_RANGE ? ' selected' : ''}>${text}</option>`).join('')}</select></div>
<div class="quiet"><label for="kind">${T.kind}</label><select id="kind" autocomplete="off"><option value="">${T.allKinds}</option></select></div>
</form>
<dl class="tiles">${tiles.map(([id, text]) => `<div><dt class="quiet">${escapeHtml(text)}</dt><dd id="${escapeHtml(id)}">–</dd></div>`).join('')}</dl>
<section class="figure" aria-labelledby="activity-head">
<h2 id="activity-head">${T.activity}</h2>
<div id="activity-chart" role="img" aria-label="${T.activityChart}"></div>
<p class="quiet" id="activity-readout" aria-hidden="true"> </p>
<details><summary>${T.asTable}</summary><div id="activity-table" role="group" aria-label="${T.activityTable}" tabindex="0"></div></details>
</section>
<div class="columns">
${figures.map(([id, text]) => `<section class="figure" aria-labelledby="${escapeHtml(id)}-head"><h2 id="${escapeHtml(id)}-head">${escapeHtml(text)}</h2><div id="${escapeHtml(id)}"></div></section>`).join('\n')}
<section class="figure own" aria-labelledby="own-head">
<h2 id="own-head">${T.own}</h2>
<p id="kept"></p>
<p class="buttons"><button type="button" class="second" id="export" disabled>${T.export}</button> <button type="button" class="danger" id="delete" disabled>${T.delete}</button></p>
<label class="switch"><input type="checkbox" role="switch" id="record" autocomplete="off"> ${T.record}</label>
<p class="quiet" id="recording"></p>
<p id="said" role="status"></p>
</section>
</div>
<dialog id="asking" aria-labelledby="asking-head">
<h2 id="asking-head">${T.askTitle}</h2>
<p>${T.ask}</p>
<form method="dialog" class="buttons"><button value="delete" class="danger">${T.confirmDelete}</button> <button value="" class="second" autofocus>${T.keep}</button></form>
</dialog>
<p class="quiet"><a href="/">${T.start}</a></p>`,
    { wide: true, description: T.lead, style, script, data: carried },
  )
}

/** The page with its script and style inside, as the build made them: one answer, and nothing else to load. */
export const route = (platform: ResolvedPlatform) =>
  defineRoute({
    tag: 'Analytics',
    summary: 'The dashboards of a visitor',
    description:
      'A page that draws what this browser has recorded, from its own storage, in the reader’s language. It sends nothing.',
    answers: [text('text/html', 'The page, with its script and style.')],
    errors: ['unavailable'],
    handle() {
      const assets = once(async () => ({
        script: await readPackageFile('dist/insights.js'),
        style: await readPackageFile('dist/insights.css'),
      }))
      return async ({ frame }) => {
        const { script, style } = await assets().catch((cause: unknown) => {
          const message = 'The script of this page is not built: npm run build makes it.'
          throw new PlatformError('unavailable', message, { cause })
        })
        return htmlResponse(insightsPage(frame, script, style, platform))
      }
    },
  })
