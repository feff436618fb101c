export const STYLE = `
:root { --ground: #f6f5f2; --paper: #fff; --ink: #1d1f24; --quiet: #5c6069; --line: #dddad2; --accent: #3451b2; --on-accent: #fff; --chosen: #e9edfb; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14161a; --paper: #1c1f25; --ink: #eceef2; --quiet: #a3a9b5; --line: #333842; --accent: #9db2ff; --on-accent: #14161a; --chosen: #262d45; }
}
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: flex; flex-direction: column; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .6rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0; }
header p { margin: 0; color: var(--quiet); font-variant-numeric: tabular-nums; }
#search { margin-left: auto; width: 15rem; max-width: 100%; font: inherit; padding: .35rem .65rem; border: 1px solid var(--line); border-radius: 8px; background: var(--ground); color: var(--ink); }
#search::placeholder { color: var(--quiet); opacity: 1; }
#fresh { all: unset; padding: .25rem .8rem; border-radius: 99px; background: var(--accent); color: var(--on-accent); font-weight: 600; cursor: pointer; }
#fresh[hidden] { display: none; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(16rem, 24rem) minmax(0, 1fr); }
nav { overflow-y: auto; border-right: 1px solid var(--line); }
ol { list-style: none; margin: 0; padding: 0; }
#none { padding: .7rem 1.25rem; margin: 0; color: var(--quiet); }
li button { all: unset; box-sizing: border-box; display: block; position: relative; width: 100%; padding: .7rem 1.25rem .7rem 1.75rem; border-bottom: 1px solid var(--line); cursor: pointer; }
li button:hover { background: var(--paper); }
li button[aria-current=true] { background: var(--chosen); box-shadow: inset 3px 0 var(--accent); }
li strong, li span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
li strong { font-weight: 400; }
li.unread strong { font-weight: 700; }
li span { color: var(--quiet); font-size: .85rem; }
li i { display: none; position: absolute; left: .7rem; top: 1.25rem; width: .5rem; height: .5rem; border-radius: 99px; background: var(--accent); }
li.unread i { display: block; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
button:focus-visible, a:focus-visible, input:focus-visible, #view:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
#fresh:focus-visible { outline-offset: 2px; }
article { min-width: 0; min-height: 0; display: flex; flex-direction: column; background: var(--paper); }
article[hidden], #empty[hidden] { display: none; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 1.1rem 1.5rem .2rem; overflow-wrap: anywhere; }
#meta { margin: 0 1.5rem .6rem; color: var(--quiet); font-size: .9rem; overflow-wrap: anywhere; }
#tools { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; margin: 0 1.5rem .5rem; font-size: .9rem; }
#tools span { display: inline-flex; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
#tools button { all: unset; padding: .2rem .75rem; cursor: pointer; color: var(--quiet); }
#tools button[aria-pressed=true] { background: var(--chosen); color: var(--ink); }
#tools button:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
#tools a { color: var(--accent); }
[role=tablist] { display: flex; gap: .25rem; padding: 0 1.25rem; border-bottom: 1px solid var(--line); overflow-x: auto; }
[role=tab] { all: unset; padding: .45rem .75rem; cursor: pointer; color: var(--quiet); border-bottom: 2px solid transparent; white-space: nowrap; }
[role=tab][aria-selected=true] { color: var(--ink); border-bottom-color: var(--accent); }
[role=tab]:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
#view { flex: 1; min-height: 0; overflow: auto; background: var(--ground); }
iframe { display: block; width: 100%; max-width: 100%; height: 100%; margin: 0 auto; border: 0; background: #fff; }
iframe.dark { background: #14161a; }
pre { margin: 0; padding: 1.25rem 1.5rem; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.55 ui-monospace, monospace; background: var(--paper); min-height: 100%; }
table { border-collapse: collapse; margin: 1rem 1.5rem; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; overflow-wrap: anywhere; }
th { white-space: nowrap; font-weight: 600; color: var(--quiet); }
#empty { margin: auto; padding: 2rem; color: var(--quiet); }
@media (max-width: 44rem) {
  body { height: auto; min-height: 100vh; }
  header { padding: .6rem 1rem; } #search { margin: 0; width: 100%; min-height: 44px; } #fresh { padding: .55rem 1rem; }
  main { grid-template-columns: minmax(0, 1fr); align-content: start; }
  nav { max-height: 38vh; border-right: 0; border-bottom: 1px solid var(--line); }
  h2, #meta, #tools { margin-left: 1rem; margin-right: 1rem; } [role=tablist] { padding: 0 .25rem; }
  #tools button, #tools a, [role=tab] { min-height: 44px; display: inline-flex; align-items: center; box-sizing: border-box; }
  #view { min-height: 60vh; } iframe { height: 75vh; } th { white-space: normal; }
}
`
