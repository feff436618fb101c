import type { Context } from './context.ts'
import { shown } from './terminal.ts'

/**
 * Shows the current wait as one line on standard error and erases it afterwards. Does nothing if that is not a
 * terminal.
 */
export interface Progress {
  show(text: string): void
  end(): void
}

const SILENT: Progress = { show: () => {}, end: () => {} }

export async function openProgress(context: Context, text: string): Promise<Progress> {
  if (context.stderr.isTTY !== true) return SILENT
  const { default: ora } = await import('ora')
  const spinner = ora({
    text: shown(text, true),
    // ora wants the stream's cursor methods, which a terminal has.
    stream: (context.stderr.drawn ?? context.stderr) as NodeJS.WriteStream,
    discardStdin: false,
    color: context.colour.stderr ? 'blue' : false,
  }).start()
  return {
    show(next) {
      spinner.text = shown(next, true)
    },
    end: () => void spinner.stop(),
  }
}
