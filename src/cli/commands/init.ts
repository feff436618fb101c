import type { Configure } from '../configure.ts'

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Write a platform.config.ts to start from, made from an .env.schema or .env.example where there is one. Nothing is overwritten.',
    )
    .option('--from <file>', 'an .env.example or .env.schema (default: the one in the working directory)')
    .addHelpText(
      'after',
      '\nExit codes: 0 written, 2 there is a definition already, or the file cannot be read.\n\nExamples:\n  platformctl init\n  platformctl init --from ../web/.env.example',
    )
    .action(async (options: { readonly from?: string }) => {
      const { initDefinition } = await import('../init-definition.ts')
      settle(await initDefinition(context, options))
    })
}
