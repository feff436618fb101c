const COLORS = `
:root { --ground: #f6f5f2; --paper: #fff; --ink: #1d1f24; --quiet: #5c6069; --line: #dddad2; --accent: #3451b2; --chosen: #e9edfb; --bad: #b3261e; --warn: #7a4d00; --good: #1b6e3c; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14161a; --paper: #1c1f25; --ink: #eceef2; --quiet: #a3a9b5; --line: #333842; --accent: #9db2ff; --chosen: #262d45; --bad: #ff8a80; --warn: #ffc66d; --good: #7fd99b; }
}
`

export const STYLE = `${COLORS}
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: flex; flex-direction: column; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .7rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0; }
header p { margin: 0; color: var(--quiet); flex: 1; }
.switches { display: flex; gap: .75rem; }
.switches span { display: inline-flex; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.switches button { all: unset; padding: .25rem .8rem; cursor: pointer; color: var(--quiet); }
.switches button[aria-pressed=true] { background: var(--chosen); color: var(--ink); }
button:focus-visible, input:focus-visible, #view:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: 320px 1fr; }
main nav { overflow-y: auto; border-right: 1px solid var(--line); }
.pages { display: flex; gap: .25rem; } .pages a { padding: .25rem .7rem; border-radius: 8px; color: var(--quiet); text-decoration: none; } .pages a[aria-current] { background: var(--chosen); color: var(--ink); }
ol { list-style: none; margin: 0; padding: 12px; display: grid; grid-template-columns: repeat(2, 142px); gap: 12px; }
li button { all: unset; box-sizing: border-box; display: flex; flex-direction: column; width: 142px; height: 100%; cursor: pointer; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; background: var(--paper); }
li button:hover { border-color: var(--quiet); }
li button[aria-current=true] { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.thumb { flex: none; position: relative; height: 150px; overflow: hidden; background: #fff; pointer-events: none; border-bottom: 1px solid var(--line); }
.thumb iframe { position: absolute; inset: 0 auto auto 0; width: 600px; height: 650px; border: 0; transform: scale(.2334); transform-origin: 0 0; }
.label { display: block; padding: .4rem .55rem .5rem; font-size: .8rem; line-height: 1.3; overflow-wrap: anywhere; }
.label small { display: block; color: var(--quiet); font-size: .73rem; }
.badge { display: block; margin-top: .2rem; font-size: .73rem; font-weight: 600; }
.good { color: var(--good); } .warning { color: var(--warn); } .error { color: var(--bad); } .notice { color: var(--quiet); }
section { min-width: 0; min-height: 0; display: flex; flex-direction: column; }
h2 { font-size: 1.15rem; margin: .8rem 1.25rem .1rem; }
#facts { margin: 0 1.25rem .6rem; color: var(--quiet); font-size: .9rem; font-variant-numeric: tabular-nums; min-height: 1.4em; }
meter { width: 8rem; height: .7rem; vertical-align: -1px; margin-left: .4rem; }
#fault { margin: 0 1.25rem .6rem; padding: .5rem .75rem; border: 1px solid var(--bad); border-radius: 8px; color: var(--bad); font: 600 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
[role=tablist] { display: flex; padding: 0 .75rem; border-bottom: 1px solid var(--line); overflow-x: auto; }
[role=tab] { all: unset; padding: .45rem .75rem; cursor: pointer; color: var(--quiet); border-bottom: 2px solid transparent; white-space: nowrap; }
[role=tab][aria-selected=true] { color: var(--ink); border-bottom-color: var(--accent); }
#count:not(:empty) { margin-left: .4rem; padding: 0 .4rem; border-radius: 99px; background: var(--chosen); color: var(--ink); font-size: .8rem; }
#view { flex: 1; min-height: 0; overflow: auto; position: relative; }
#view iframe { display: block; margin: 0 auto; border: 0; max-width: 100%; background: #fff; }
#view iframe.next { position: absolute; visibility: hidden; }
.four { display: grid; grid-template-columns: 600px 360px; gap: 1.25rem; padding: 1.25rem; justify-content: center; align-items: start; }
#filter { width: 11rem; }
#preheader { margin: 0 1.25rem .1rem; color: var(--quiet); overflow-wrap: anywhere; } #preheader:empty { display: none; }
#tools { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: center; margin: 0 1.25rem .5rem; font-size: .9rem; }
#tools button { all: unset; padding: .2rem .7rem; border: 1px solid var(--line); border-radius: 8px; cursor: pointer; background: var(--paper); } #tools a, .finding a { color: var(--accent); } #said { color: var(--quiet); }
#tools button:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
#nomatch { padding: 0 1.25rem; color: var(--quiet); }
.meanings { display: block; height: auto; } article { max-width: 46rem; padding: .5rem 1.25rem 3rem; } article h2 { margin: 1.4rem 0 .1rem; scroll-margin: 1rem; } article h2:target { color: var(--accent); } article p { margin: 0; }
#sender[hidden] { display: none; }
#sender:not([hidden]) { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; padding: 0; margin: 0 1.25rem .6rem; } #sender input { flex: 0 1 18rem; min-width: 0; }
figure { margin: 0; } figcaption { color: var(--quiet); font-size: .85rem; padding-bottom: .35rem; }
figure > div { box-shadow: 0 0 0 1px var(--line); border-radius: 8px; overflow: hidden; }
pre { margin: 0; padding: 1.25rem; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.55 ui-monospace, monospace; }
dl { margin: 0; padding: 1.25rem; display: grid; grid-template-columns: max-content 1fr; gap: .45rem 1.25rem; font-size: .93rem; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; font-family: ui-monospace, monospace; font-size: 13px; }
.findings { padding: 1.25rem; display: grid; gap: .75rem; max-width: 60rem; }
.finding { border: 1px solid var(--line); border-left: 4px solid currentcolor; border-radius: 8px; background: var(--paper); padding: .65rem .9rem; }
.finding p { margin: .15rem 0 0; color: var(--ink); overflow-wrap: anywhere; }
.finding code { color: var(--quiet); font-size: 12.5px; }
.blank { padding: 1.25rem; margin: 0; max-width: 40rem; }
.none { padding: 1.25rem; margin: 0; color: var(--good); font-weight: 600; }
form { padding: 1.25rem; display: grid; gap: .9rem; max-width: 44rem; }
label { display: grid; gap: .25rem; font-weight: 600; }
label small { font-weight: 400; color: var(--quiet); }
input { font: inherit; font-weight: 400; padding: .45rem .6rem; border: 1px solid var(--line); border-radius: 6px; background: var(--paper); color: var(--ink); }
form button { all: unset; justify-self: start; padding: .35rem .8rem; border: 1px solid var(--line); border-radius: 8px; cursor: pointer; background: var(--paper); }
/* There is no room for two columns beside the gallery: desktop views come first, then the phones side by side. */
@media (max-width: 86rem) { .four { display: flex; flex-wrap: wrap; } .four figure { max-width: 100%; } .four figure:nth-child(even) { order: 1; } }
@media (max-width: 52rem) {
  body { height: auto; } main { grid-template-columns: minmax(0, 1fr); } main nav { border-right: 0; border-bottom: 1px solid var(--line); }
  ol { display: flex; overflow-x: auto; } li { flex: 0 0 142px; } .thumb { height: 96px; }
  #filter { width: 100%; } #filter, .switches button, [role=tab], #tools button, #tools a, .pages a, form button { min-height: 44px; display: inline-flex; align-items: center; box-sizing: border-box; } input { min-height: 44px; } #sender input { flex: 1 1 10rem; }
  .four { padding: .75rem; } dl { grid-template-columns: 1fr; gap: .1rem; } dd { margin-bottom: .5rem; }
}
`

/** Style of the pages of courses and languages. */
export const PAGES_STYLE = `${COLORS}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .7rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0; } header p { margin: 0; color: var(--quiet); flex: 1; min-width: 8rem; }
.pages { display: flex; gap: .25rem; } .pages a { padding: .25rem .7rem; border-radius: 8px; color: var(--quiet); text-decoration: none; } .pages a[aria-current] { background: var(--chosen); color: var(--ink); }
main { max-width: 76rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
form { display: flex; flex-wrap: wrap; gap: .75rem 1rem; align-items: end; padding: .9rem 1rem; border: 1px solid var(--line); border-radius: 12px; background: var(--paper); }
.field { margin: 0; display: grid; gap: .2rem; flex: 0 1 auto; min-width: 0; } .field label { font-size: .85rem; color: var(--quiet); }
input, select, button { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 8px; padding: .4rem .6rem; min-height: 40px; max-width: 100%; }
button { cursor: pointer; padding: .4rem 1rem; } [aria-invalid] { border-color: var(--bad); }
:is(input, select, button, a):focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
#faults p, .fault { margin: .75rem 0 0; padding: .5rem .75rem; border: 1px solid var(--bad); border-radius: 8px; color: var(--bad); overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 1.4rem 0 0; line-height: 1.25; overflow-wrap: anywhere; } h2 small { font-size: .85rem; font-weight: 400; color: var(--quiet); }
#shown > p { margin: .3rem 0; max-width: 52rem; } .quiet { color: var(--quiet); } a { color: var(--accent); } a.quiet { color: var(--quiet); font-size: .85rem; }
h3 { font-size: .95rem; margin: 1.4rem 0 .5rem; }
.timeline { list-style: none; margin: 0; padding: 0; }
.timeline > li { display: grid; grid-template-columns: 15.5rem 12px minmax(0, 1fr); gap: 0 .9rem; }
.timeline > li > :not(.rail) { margin-block: .35rem; }
/* The line, and a dot on it. */
.rail { background: linear-gradient(var(--line), var(--line)) center / 2px 100% no-repeat; }
.rail i { display: block; width: 12px; height: 12px; margin-top: .95rem; border-radius: 50%; border: 2px solid var(--accent); background: var(--ground); }
.lesson .rail i { background: var(--accent); } .clock .rail i { border-color: var(--warn); border-radius: 2px; transform: rotate(45deg); }
time { text-align: right; padding-top: .5rem; color: var(--quiet); font-variant-numeric: tabular-nums; } time b { color: var(--ink); } time small { display: inline-block; min-width: 3.9rem; padding-left: .3rem; text-align: left; }
.what { min-width: 0; margin: 0; padding-top: .5rem; overflow-wrap: anywhere; } .what p { margin: 0; } .lesson .what { padding: .5rem .85rem; border: 1px solid var(--line); border-radius: 10px; background: var(--paper); }
.what > p:first-child a:first-of-type { font-weight: 600; text-decoration: none; } .what > p:first-child a:first-of-type:hover { text-decoration: underline; }
.what .quiet { font-size: .85rem; } .day { display: inline-block; min-width: 5.4rem; color: var(--quiet); font-variant-numeric: tabular-nums; }
.clock .what { color: var(--warn); font-size: .9rem; }
.notes { list-style: none; margin: .3rem 0 0; padding: 0; display: grid; gap: .2rem; font-size: .87rem; } .notes li::before { content: '• '; } .notes .warning { color: var(--warn); } .notes .error { color: var(--bad); }
.blank { max-width: 44rem; }
.panes { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.25rem; align-items: start; }
.panes h3 { margin: .7rem 0 0; font-size: 1.05rem; } .panes .quiet { margin: 0 0 .6rem; } .panes bdi { unicode-bidi: isolate; }
.missing { margin: .7rem 0 0; padding: .5rem .75rem; border: 1px solid currentcolor; border-radius: 8px; color: var(--warn); }
iframe { display: block; width: 100%; height: 40rem; border: 0; box-shadow: 0 0 0 1px var(--line); border-radius: 10px; background: #fff; }
@media (max-width: 52rem) {
  main { padding-inline: .9rem; } .field { flex: 1 1 100%; } .field :is(input, select) { width: 100%; } input, select, button { min-height: 44px; } .pages a { min-height: 44px; display: inline-flex; align-items: center; }
  .timeline > li { grid-template-columns: 12px minmax(0, 1fr); } .rail { grid-column: 1; grid-row: 1 / span 2; } time, .what { grid-column: 2; } time { text-align: left; } .timeline > li > time { margin-bottom: 0; } .begin .what, .clock .what { padding-top: 0; }
  .panes { grid-template-columns: minmax(0, 1fr); }
}
`
