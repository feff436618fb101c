import { COLORS } from './style.ts'

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
