import { ALERT_FAULTS } from './drill/alerts.ts'
import { FAULTS } from './drill/faults.ts'
import { MOST_FIXES, MOST_LOOKS } from './drill/machine.ts'
import { runSteps } from './runbooks/session.ts'

/**
 * `npm run drill [NAME …]`: makes each fault on an empty machine, follows it from the alert to "closed" with the commands
 * that an operator would type, and counts them. A fault whose cause is not named, or that stays open, fails the drill.
 */
const wanted = process.argv.slice(2)
let failed = 0
for (const { name, page, make, look, fix, closed } of [...FAULTS, ...ALERT_FAULTS]) {
  if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue
  const said = [...look, ...fix, closed]
  const steps = said.map(({ command }, index) => ({ line: index + 1, command, output: [], exitCode: 0 }))
  // Ends the processes that the fault started. Their ids are in files, because they outlive the shell that made them.
  const end = {
    line: 0,
    command: 'for file in pid api.pid; do [ -f $file ] && kill -9 $(cat $file); done; true',
    output: [],
    exitCode: 0,
  }
  // Making a fault may well fail: that is its point.
  const done = await runSteps([...steps, end], `${make}\ntrue`)
  const wrong = said.flatMap(({ command, says }, index) => {
    const text = done[index]?.output.join('\n') ?? ''
    return says === undefined || says.test(text)
      ? []
      : [`  $ ${command}\n${text.replace(/^/gm, '    ')}\n  expected ${says}`]
  })
  const short = look.length <= MOST_LOOKS && fix.length <= MOST_FIXES
  const passed = wrong.length === 0 && short
  if (!passed) failed += 1
  console.log(
    `${passed ? '✓' : '✗'} ${name}: ${look.length} to the cause, ${fix.length} to the fix (runbooks/${page})${wrong.length > 0 ? `\n${wrong.join('\n')}` : ''}`,
  )
}
console.log(failed === 0 ? 'every fault was found and closed' : `${failed} faults were not`)
process.exitCode = failed === 0 ? 0 : 1
