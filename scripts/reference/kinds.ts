import { KINDS, VALUE_KINDS } from '../../src/core/env/kinds.ts'

/** docs/reference/kinds.md: made from the kinds of value. */
export function kindsReference(): string {
  const rows = VALUE_KINDS.map((name) => {
    const kind = KINDS[name]
    const takes = typeof kind.expected === 'string' ? kind.expected : kind.expected({ of: ['`of`'] })
    const type = 'secret' in kind ? 'Secret' : 'type' in kind ? kind.type : 'string'
    const gives = [`\`${type}\``, ...('gives' in kind ? [kind.gives] : [])].join(', ')
    return `| \`${name}\` | ${[takes, `\`${kind.example}\``, gives].map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  })
  return `# Kinds of values

<!-- Made by \`npm run make\`. -->

For \`kind\` of [a variable](definition.md#variables).

| Kind | Takes | Example | Code gets |
|---|---|---|---|
${rows.join('\n')}

A \`Secret\` prints as \`[secret]\`; \`reveal()\` gives its text. With a \`schema\`, code gets what the schema gives. Each form of a PEM works: several lines in quotes, a \`NAME_FILE\`, or one line in double quotes with \`\\n\` for each line end, which every reader of env files understands.
`
}
