import type { InsightsData } from '../../core/analytics/insights-data.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import { type Page, page } from './layout.ts'

/** What the page says before its script fills it. */
const T = {
  title: 'Insights',
  lead: 'What you did here, drawn from this browser’s own storage. Nothing on this page leaves your device.',
  noScript: 'This page needs JavaScript to draw its charts, and JavaScript is off in this browser.',
  fresh: 'Nothing is recorded in this browser yet.',
  showSample: 'Show sample data',
  sampleTitle: 'Sample data.',
  sample: 'Nothing here is real, and nothing is stored.',
  hideSample: 'Hide sample data',
  controls: 'Filters',
  range: 'Range',
  kind: 'Kind',
  allKinds: 'all kinds',
  activity: 'Activity',
  activityChart: 'Bar chart of events per day',
  asTable: 'Show as a table',
  activityTable: 'Events per day, as a table',
  own: 'Your data',
  export: 'Export',
  delete: 'Delete…',
  record: 'Record my activity in this browser',
  askTitle: 'Delete your data?',
  ask: 'This removes all events from this browser and cannot be undone. Export them first to keep a copy.',
  confirmDelete: 'Delete',
  keep: 'Keep',
  start: 'Go to the start page',
} as const

const RANGES = [
  ['7', 'last 7 days', ''],
  ['30', 'last 30 days', ' selected'],
  ['90', 'last 90 days', ''],
  ['', 'everything', ''],
] as const

const TILES = [
  ['total', 'events'],
  ['active-days', 'active days'],
  ['current-streak', 'current streak, in days'],
  ['longest-streak', 'longest streak, in days'],
] as const

/**
 * The frame of /insights; the script fills it from the browser's own storage. Nothing about the visitor is known here:
 * the page is the same for everybody.
 */
export function insightsPage({
  script,
  style,
  data,
}: {
  readonly script: string
  readonly style: string
  readonly data: InsightsData
}): Page {
  const tiles = [
    ...TILES,
    ...data.sections.flatMap(({ id, tile }) => (tile ? [[`${id}-tile`, tile.label] as const] : [])),
  ]
  const figures = [
    ['kinds', 'What you did'],
    ...data.sections.map(({ id, heading }) => [id, heading] as const),
  ] as const
  return page({
    title: T.title,
    wide: true,
    style,
    script,
    data,
    body: `<h1>${T.title}</h1>
<p class="quiet lead">${T.lead}</p>
<noscript><div class="note"><p>${T.noScript}</p></div></noscript>
<div class="note" id="fresh" hidden><p>${T.fresh}</p><button type="button" id="show-sample">${T.showSample}</button></div>
<div class="note" id="sample" role="status" hidden><p><strong>${T.sampleTitle}</strong> ${T.sample}</p><button type="button" class="second" id="hide-sample">${T.hideSample}</button></div>
<form class="controls" aria-label="${T.controls}">
<div><label for="range">${T.range}</label><select id="range" autocomplete="off">${RANGES.map(([value, text, selected]) => `<option value="${value}"${selected}>${text}</option>`).join('')}</select></div>
<div><label for="kind">${T.kind}</label><select id="kind" autocomplete="off"><option value="">${T.allKinds}</option></select></div>
</form>
<dl class="tiles">${tiles.map(([id, text]) => `<div><dt>${escapeHtml(text)}</dt><dd id="${escapeHtml(id)}">–</dd></div>`).join('')}</dl>
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
  })
}
