import { command, type Define } from '../command.ts'

export const define: Define = () =>
  command({
    description:
      'Write a platform.config.ts to start from, made from an .env.schema or .env.example where there is one. Nothing is overwritten.',
    exits:
      '0 written, 2 there is a definition or a folder of that course already, or the file cannot be read.',
    examples: ['', '--from ../web/.env.example', '--course first-steps --language de'],
    inputs: {
      '--from <file>': 'an .env.example or .env.schema (default: the one in the working directory)',
      '--course <id>': 'begin a course of this id, with its first lesson',
      '--language <tag>': 'the language of the platform, as de (default: en)',
    },
    run: async (context, values) => (await import('../init-definition.ts')).initDefinition(context, values),
  })
