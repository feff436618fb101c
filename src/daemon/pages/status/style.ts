/** Style of the status page alone; the colors of the states are the frame's. */
export const STATUS_STYLE = `
:root { --none: #b9b6ad; --wash: #f7f6f3; }
@media (prefers-color-scheme: dark) { :root { --none: #5a606e; --wash: #232833; } }
main.wide { padding-top: 2.5rem; }
.eyebrow { font-size: .8rem; font-weight: 600; letter-spacing: .06em; text-transform: uppercase; color: var(--quiet); margin: 0 0 .9rem; }
.sign { width: 1.1em; height: 1.1em; vertical-align: -.18em; flex: none; }
.shapes { position: absolute; width: 0; height: 0; }
symbol circle { fill: currentColor; }
symbol path { fill: none; stroke: var(--paper); stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.sign.unknown, .sign.skipped { color: var(--quiet); }
.verdict { display: flex; gap: 1.1rem; align-items: flex-start; background: var(--paper); border: 1px solid var(--line); border-left: 6px solid currentColor; border-radius: 14px; padding: 1.5rem 1.6rem 1.35rem; }
.verdict.unknown { color: var(--quiet); }
.verdict > .sign { width: 2.6rem; height: 2.6rem; margin-top: .1rem; }
.verdict div { color: var(--ink); }
.verdict h1 { font-size: 1.75rem; letter-spacing: -.015em; margin: 0; text-wrap: balance; overflow-wrap: anywhere; }
.verdict h1 small { display: block; font-size: 1rem; font-weight: 400; letter-spacing: 0; color: var(--quiet); margin-top: .3rem; }
.note.announced { border-color: var(--accent); overflow-wrap: anywhere; } .announced small { color: var(--quiet); }
.note { border-left: 3px solid var(--degraded); padding: .1rem 0 .1rem .9rem; margin: 1.25rem 0 0; }
.key { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .25rem 1.5rem; margin: 2.25rem .2rem .6rem; font-size: .85rem; color: var(--quiet); }
.key p { margin: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 0 1.1rem; list-style: none; margin: 0; padding: 0; }
.legend .bars { width: 12px; height: 16px; display: inline-block; vertical-align: -.2em; }
.bars { display: block; width: 100%; height: 26px; }
.bars { fill: none; stroke-dasharray: 3 1; }
.bars rect { fill: transparent; stroke: none; }
.o { stroke: var(--ok); stroke-width: 24; } .d { stroke: var(--degraded); stroke-width: 14; } .e { stroke: var(--degraded); stroke-width: 6; } .f { stroke: var(--failing); stroke-width: 10; } .n { stroke: var(--none); stroke-width: 3; }
.service { background: var(--paper); border: 1px solid var(--line); border-radius: 14px; margin: 0 0 1.1rem; overflow: hidden; }
.service header { padding: 1.15rem 1.4rem 1.1rem; }
.head { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .8rem; margin-bottom: .7rem; }
.head h2 { margin: 0; font-size: 1.2rem; }
.head .up { margin-left: auto; font-weight: 600; font-variant-numeric: tabular-nums; }
.word { font-weight: 600; white-space: nowrap; }
.word.skipped, .word.unknown { color: var(--quiet); }
.axis { display: flex; justify-content: space-between; font-size: .8rem; color: var(--quiet); margin: .3rem 0 0; }
.axis span:nth-child(2) { text-align: center; }
.service table { border: 0; border-top: 1px solid var(--line); border-radius: 0; background: var(--wash); font-size: .93rem; }
.service th, .service td { padding: .5rem .7rem; vertical-align: middle; border-top: 1px solid var(--line); }
.service tr > :first-child { padding-left: 1.4rem; } .service tr > :last-child { padding-right: 1.4rem; }
.service thead th { font-size: .78rem; font-weight: 500; color: var(--quiet); padding-top: .55rem; padding-bottom: .35rem; }
.service tbody tr:first-child th, .service tbody tr:first-child td { border-top: 1px solid var(--line); }
.service tbody th .sign { margin-right: .35rem; }
.service .num { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.service table { table-layout: fixed; } .service thead th { width: auto; } .service thead th:first-child { width: 27%; } .service thead th:nth-child(3) { width: 6.5rem; } .service thead th:nth-child(4) { width: 11rem; }
.service tbody th { white-space: normal; } .service .days .bars { height: 20px; }
.why { display: block; font-weight: 400; font-size: .85rem; color: var(--quiet); white-space: normal; overflow-wrap: anywhere; }
.list { list-style: none; margin: 0; padding: 0; background: var(--paper); border: 1px solid var(--line); border-radius: 14px; }
.list li { padding: .8rem 1.4rem; border-top: 1px solid var(--line); display: flex; gap: .8rem; } .list li:first-child { border-top: 0; }
.list .updates li, .updates li { display: block; border: 0; padding: .3rem 0 0; overflow-wrap: anywhere; } .updates { margin: 0; padding: 0; } .updates small { color: var(--quiet); }
.list .sign { margin-top: .22rem; } .list p { margin: 0; } .list .quiet { overflow-wrap: anywhere; }
.off { margin: 0; background: var(--paper); border: 1px solid var(--line); border-radius: 14px; padding: .4rem 1.4rem; }
.off div { display: grid; grid-template-columns: minmax(9rem, 15rem) 1fr; gap: .1rem 1.2rem; padding: .5rem 0; border-top: 1px solid var(--line); } .off div:first-child { border-top: 0; }
.off dt { font-weight: 600; } .off dd { margin: 0; color: var(--quiet); }
footer { margin-top: 2.5rem; padding-top: 1.1rem; border-top: 1px solid var(--line); font-size: .9rem; color: var(--quiet); display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; }
footer p { margin: 0; flex: 1 1 20rem; }
.operator { margin: 0 0 1.5rem; padding: .6rem 1rem; border: 2px solid var(--accent); border-radius: 10px; }
.times { margin-top: .9rem; } .times svg { display: block; width: 100%; height: 30px; } .times path { fill: none; stroke-width: 3; } .t95 { stroke: var(--none); } .t50 { stroke: var(--accent); } .times p { margin: .3rem 0 0; font-size: .8rem; color: var(--quiet); }
.charts { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem 2rem; } .charts figure { margin: 0; } .charts svg { display: block; width: 100%; height: 64px; border-bottom: 1px solid var(--line); } .charts path { fill: none; stroke-width: 3; } .charts .under { stroke: var(--accent); } .charts .over { stroke: var(--failing); } .charts .limit { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 4 3; vector-effect: non-scaling-stroke; } .charts figcaption { margin-top: .4rem; font-size: .85rem; color: var(--quiet); }
.mail .quiet { margin: .9rem 0 0; font-size: .85rem; } .mail .note { margin: 0 0 1rem; } .mail summary { padding: .6rem 1.4rem; cursor: pointer; border-top: 1px solid var(--line); } .mail .wide { overflow-x: auto; } .mail td, .mail thead th:not(:first-child) { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } .mail small { color: var(--quiet); }
.bars[tabindex] { cursor: crosshair; touch-action: pan-y; } .bars[tabindex]:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
.tip { position: absolute; z-index: 1; max-width: 17rem; padding: .45rem .7rem; border-radius: 8px; background: var(--ink); color: var(--paper); font-size: .85rem; line-height: 1.4; pointer-events: none; }
details.service > summary { display: flex; align-items: baseline; gap: .55rem; padding: .7rem 1.4rem; cursor: pointer; } details.service > summary::before { content: '▸' / ''; color: var(--quiet); } details.service[open] > summary::before { content: '▾' / ''; } details.service .head { flex: 1; margin: 0; } details.service > header { padding-top: .2rem; }
details.service:not([open]) { margin-bottom: .45rem; }
@media (max-width: 38rem) {
  main.wide { padding: 1.25rem .8rem 3rem; }
  .verdict { padding: 1.1rem 1.1rem 1rem; gap: .8rem; } .verdict > .sign { width: 1.9rem; height: 1.9rem; } .verdict h1 { font-size: 1.35rem; }
  .service header { padding: 1rem 1rem .9rem; } details.service > summary { padding-inline: 1rem; } .list li, .off { padding-left: 1rem; padding-right: 1rem; }
  .service table, .service tbody { display: block; } .service thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .service tr { grid-template-columns: 1fr auto; gap: .3rem .7rem; padding: .7rem 1rem; }
  .service tbody tr:first-child { border-top: 1px solid var(--line); }
  .service tbody th, .service tbody td, .service tbody tr:first-child th, .service tbody tr:first-child td, .service tr > :first-child, .service tr > :last-child { padding: 0; border: 0; }
  .service tbody th { grid-column: 1; grid-row: 1; white-space: normal; } .service .days { grid-column: 1 / -1; grid-row: 2; width: auto; }
  .service .num { width: auto; grid-row: 1; color: var(--ink); } .service .num + .num { grid-row: 3; grid-column: 1 / -1; text-align: left; color: var(--quiet); font-size: .85rem; }
  .service td.num + .num::before { content: 'p50 · p95 · p99  ' / ''; white-space: pre; }
  .axis { flex-wrap: wrap; } .axis span:nth-child(2) { order: 3; flex: 1 0 100%; text-align: left; }
  .off div, .charts { grid-template-columns: 1fr; } .mail summary { padding: .6rem 1rem; } .service.mail td { grid-column: 1 / -1; display: flex; align-items: baseline; gap: .5rem; } .mail td::before { content: attr(data-name); margin-right: auto; color: var(--quiet); }
}
@media print {
  :root { --ground: #fff; --paper: #fff; --wash: #fff; --ink: #000; --quiet: #444; --line: #999; --none: #b9b6ad; --accent: #3147a8; --ok: #1e7a46; --degraded: #8a5a00; --failing: #b3261e; }
  .service, .list li, .off { break-inside: avoid; } .bars { print-color-adjust: exact; } footer a { display: none; }
}
`
