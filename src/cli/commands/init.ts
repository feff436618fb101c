import type { Configure } from '../context.ts'
import type { InitOptions } from '../init-definition.ts'

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Write a platform.config.ts to start from, made from an .env.schema or .env.example where there is one. Nothing is overwritten.',
    )
    .option('--from <file>', 'an .env.example or .env.schema (default: the one in the working directory)')
    .option('--course <id>', 'begin a course of this id, with its first lesson')
    .option('--language <tag>', 'the language of the platform, as de (default: en)')
    .addHelpText(
      'after',
      '\nExit codes: 0 written, 2 there is a definition or a folder of that course already, or the file cannot be read.\n\nExamples:\n  platformctl init\n  platformctl init --from ../web/.env.example\n  platformctl init --course first-steps --language de',
    )
    .action(async (options: InitOptions) => {
      const { initDefinition } = await import('../init-definition.ts')
      settle(await initDefinition(context, options))
    })
}
