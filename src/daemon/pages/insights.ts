import { type Page, page } from './layout.ts'

const RANGES = [
  ['7', 'last 7 days', ''],
  ['30', 'last 30 days', ' selected'],
  ['90', 'last 90 days', ''],
  ['', 'everything', ''],
] as const

const TILES = [
  ['total', 'events'],
  ['active-days', 'active days'],
  ['current-streak', 'days in a row now'],
  ['longest-streak', 'longest streak'],
  ['completed', 'lessons completed'],
] as const

const FIGURES = [
  ['kinds', 'What you did'],
  ['lessons', 'Lessons'],
  ['exams', 'Exams'],
  ['devices', 'Devices'],
  ['tutor', 'Tutor'],
] as const

/**
 * The frame of /insights; the script fills it from the browser's own storage. Nothing about the visitor is known here:
 * the page is the same for everybody.
 */
export function insightsPage({ script, style }: { readonly script: string; readonly style: string }): Page {
  return page({
    title: 'Insights',
    wide: true,
    style,
    script,
    body: `<h1>Insights</h1>
<p class="quiet lead">What you did here, drawn from this browser’s own storage. The page asks nobody for it, and what it shows is sent to nobody.</p>
<noscript><div class="note"><p>The charts are drawn by a script of this page, and scripts are off in this browser.</p></div></noscript>
<div class="note" id="fresh" hidden><p>Nothing is recorded in this browser yet.</p><button type="button" id="show-sample">Show sample data</button></div>
<div class="note" id="sample" role="status" hidden><p><strong>This is sample data.</strong> It is of nobody, and is not stored.</p><button type="button" class="second" id="hide-sample">Hide sample data</button></div>
<form class="controls" aria-label="What is shown">
<div><label for="range">Range</label><select id="range" autocomplete="off">${RANGES.map(([value, text, selected]) => `<option value="${value}"${selected}>${text}</option>`).join('')}</select></div>
<div><label for="kind">Kind</label><select id="kind" autocomplete="off"><option value="">all kinds</option></select></div>
</form>
<dl class="tiles">${TILES.map(([id, text]) => `<div><dt>${text}</dt><dd id="${id}">–</dd></div>`).join('')}</dl>
<section class="figure" aria-labelledby="activity-head">
<h2 id="activity-head">Activity</h2>
<div id="activity-chart" role="img" aria-label="Bar chart of events a day"></div>
<p class="quiet" id="activity-readout" aria-hidden="true"> </p>
<details><summary>The same as a table</summary><div id="activity-table" role="group" aria-label="Events on each day, as a table" tabindex="0"></div></details>
</section>
<div class="columns">
${FIGURES.map(([id, text]) => `<section class="figure" aria-labelledby="${id}-head"><h2 id="${id}-head">${text}</h2><div id="${id}"></div></section>`).join('\n')}
<section class="figure own" aria-labelledby="own-head">
<h2 id="own-head">Your data</h2>
<p id="kept"></p>
<p class="buttons"><button type="button" class="second" id="export" disabled>Export</button> <button type="button" class="danger" id="delete" disabled>Delete…</button></p>
<label class="switch"><input type="checkbox" role="switch" id="opt-out" autocomplete="off"> Record and report nothing</label>
<p class="quiet" id="recording"></p>
<p id="said" role="status"></p>
</section>
</div>
<dialog id="asking" aria-labelledby="asking-head">
<h2 id="asking-head">Delete your data?</h2>
<p>All events are removed from this browser. That cannot be undone; export them first if you want to keep them.</p>
<form method="dialog" class="buttons"><button value="delete" class="danger">Delete</button> <button value="" class="second" autofocus>Keep</button></form>
</dialog>
<p class="quiet"><a href="/">To the start page</a></p>`,
  })
}
