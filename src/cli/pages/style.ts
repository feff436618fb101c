export const BASE_STYLE = `
:root { --ground: #f6f5f2; --paper: #fff; --ink: #1d1f24; --quiet: #5c6069; --line: #dddad2; --accent: #3451b2; --on-accent: #fff; --chosen: #e9edfb; --bad: #b3261e; --warn: #7a4d00; --good: #1b6e3c; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14161a; --paper: #1c1f25; --ink: #eceef2; --quiet: #a3a9b5; --line: #333842; --accent: #9db2ff; --on-accent: #14161a; --chosen: #262d45; --bad: #ff8a80; --warn: #ffc66d; --good: #7fd99b; }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .6rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0; }
header p { margin: 0; color: var(--quiet); flex: 1; min-width: 8rem; font-variant-numeric: tabular-nums; }
a { color: var(--accent); }
button, input, select { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 8px; padding: .3rem .8rem; max-width: 100%; }
button { cursor: pointer; }
button[aria-pressed=true] { background: var(--chosen); border-color: var(--accent); }
:is(button, input, select, a, summary, [tabindex]):focus-visible { outline: 2px solid var(--accent); outline-offset: -1px; }
ol, ul { list-style: none; margin: 0; padding: 0; }
code, pre, dd { font: 13px/1.55 ui-monospace, monospace; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); } .good { color: var(--good); } .warning { color: var(--warn); } .error { color: var(--bad); }
.fault { margin: .75rem 0 0; padding: .5rem .75rem; border: 1px solid var(--bad); border-radius: 8px; color: var(--bad); overflow-wrap: anywhere; }
.pages { display: flex; gap: .25rem; } .pages a { padding: .25rem .7rem; border-radius: 8px; color: var(--quiet); text-decoration: none; } .pages a[aria-current] { background: var(--chosen); color: var(--ink); }
@media (max-width: 52rem) { button, input, select, .pages a, [role=tab] { min-height: 44px; } .pages a { display: inline-flex; align-items: center; } }
`

export const MAILS_STYLE = `
body { height: 100vh; display: flex; flex-direction: column; }
#search { width: 13rem; }
#fresh { border-radius: 99px; background: var(--accent); color: var(--on-accent); font-weight: 600; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: 21rem minmax(0, 1fr); }
main nav { overflow-y: auto; border-right: 1px solid var(--line); }
#none, #empty { padding: 1rem 1.25rem; margin: 0; color: var(--quiet); }
li button { all: unset; box-sizing: border-box; display: block; width: 100%; padding: .7rem 1.25rem; border-bottom: 1px solid var(--line); cursor: pointer; }
li button:hover { background: var(--paper); }
li button[aria-current=true] { background: var(--chosen); box-shadow: inset 3px 0 var(--accent); }
li strong, li small { display: block; font-weight: 400; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
li small { color: var(--quiet); font-size: .85rem; }
.badge:not(:empty) { display: block; font-size: .75rem; font-weight: 600; } .badge.new { color: var(--accent); }
li:has(.new) strong { font-weight: 700; }
.gallery { padding: 12px; display: grid; grid-template-columns: repeat(2, 142px); gap: 12px; }
.gallery button { display: flex; flex-direction: column; width: 142px; height: 100%; padding: 0; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; background: var(--paper); }
.gallery button[aria-current=true] { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.gallery .label { display: block; padding: .4rem .55rem .5rem; font-size: .8rem; line-height: 1.3; }
.gallery strong, .gallery small { white-space: normal; overflow-wrap: anywhere; }
.thumb { flex: none; position: relative; height: 150px; overflow: hidden; background: #fff; pointer-events: none; border-bottom: 1px solid var(--line); }
.thumb iframe { position: absolute; inset: 0 auto auto 0; width: 600px; height: 650px; border: 0; transform: scale(.2334); transform-origin: 0 0; }
#mail { min-width: 0; min-height: 0; display: flex; flex-direction: column; background: var(--paper); }
#mail > :is(h2, p, form) { margin: .2rem 1.25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; line-height: 1.3; } #mail > h2 { margin-top: .8rem; }
#meta, #facts { color: var(--quiet); font-size: .9rem; font-variant-numeric: tabular-nums; } #facts { min-height: 1.4em; }
meter { width: 8rem; height: .7rem; vertical-align: -1px; margin-left: .4rem; }
#fault { font: 600 13px/1.5 ui-monospace, monospace; }
#tools, #sender { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: center; font-size: .9rem; }
#tools span[role=group] { display: inline-flex; } #tools span button { border-radius: 0; }
#back { display: none; }
[role=tablist] { display: flex; padding: 0 .75rem; border-bottom: 1px solid var(--line); overflow-x: auto; flex: none; }
[role=tab] { all: unset; box-sizing: border-box; display: inline-flex; align-items: center; padding: .45rem .75rem; cursor: pointer; color: var(--quiet); border-bottom: 2px solid transparent; white-space: nowrap; }
[role=tab][aria-selected=true] { color: var(--ink); border-bottom-color: var(--accent); }
#count:not(:empty) { margin-left: .4rem; padding: 0 .4rem; border-radius: 99px; background: var(--chosen); color: var(--ink); font-size: .8rem; }
#body { flex: 1; min-height: 0; display: flex; background: var(--ground); }
#view { flex: 1; min-width: 0; overflow: auto; position: relative; }
#view iframe { display: block; margin: 0 auto; border: 0; max-width: 100%; height: 100%; background: #fff; }
#view iframe.next { position: absolute; visibility: hidden; }
.four { display: grid; grid-template-columns: 600px 360px; gap: 1.25rem; padding: 1.25rem; justify-content: center; align-items: start; }
figure { margin: 0; } figcaption { color: var(--quiet); font-size: .85rem; padding-bottom: .35rem; }
figure > div { box-shadow: 0 0 0 1px var(--line); border-radius: 8px; overflow: hidden; }
pre { margin: 0; padding: 1.25rem; white-space: pre-wrap; }
dl { margin: 0; padding: 1.25rem; display: grid; grid-template-columns: max-content 1fr; gap: .45rem 1.25rem; font-size: .93rem; }
dt { color: var(--quiet); } dd { margin: 0; }
.findings, .blank, .parts { padding: 1.25rem; margin: 0; max-width: 60rem; } .findings { display: grid; gap: .75rem; } .findings h3 { font-size: 1rem; margin: .75rem 0 0; } .parts h3 { font-size: 1rem; margin: 1rem 0 .3rem; } .parts li { overflow-wrap: anywhere; }
.finding { border: 1px solid var(--line); border-left: 4px solid currentcolor; border-radius: 8px; background: var(--paper); padding: .65rem .9rem; }
.finding p { margin: .15rem 0 0; color: var(--ink); overflow-wrap: anywhere; } .finding code { color: var(--quiet); }
#slots { flex: none; width: 19rem; overflow-y: auto; padding: .9rem 1.25rem; border-left: 1px solid var(--line); background: var(--paper); }
#slots summary { font-weight: 600; cursor: pointer; } #slots form { display: grid; gap: .9rem; margin-top: .8rem; } #slots label { display: grid; gap: .25rem; font-weight: 600; } #slots input { font-weight: 400; } #slots label small { font-weight: 400; color: var(--quiet); }
/* There is no room for two columns beside the gallery: desktop views come first, then the phones side by side. */
@media (max-width: 106rem) { .four { display: flex; flex-wrap: wrap; } .four figure { max-width: 100%; } .four figure:nth-child(even) { order: 1; } }
@media (max-width: 64rem) { #body { flex-direction: column; overflow-y: auto; } #view { flex: none; min-height: 50vh; } #slots { width: auto; border: 0; } }
/* On a phone either the list is shown or one mail, which has an address of its own: Back leads to the list. */
@media (max-width: 52rem) {
  body { height: auto; min-height: 100vh; } #search { width: 100%; } main { grid-template-columns: minmax(0, 1fr); } main nav { border: 0; }
  body:not(.reading) #mail, .reading main nav, .reading #search { display: none; } #back { display: inline-flex; min-height: 44px; align-items: center; }
  .gallery { grid-template-columns: repeat(auto-fill, 142px); justify-content: center; }
  #body, #view { overflow: visible; } #view iframe { min-height: 75vh; } .four { padding: .75rem; } dl { grid-template-columns: 1fr; gap: .1rem; } dd { margin-bottom: .5rem; }
}
`
