const repeated = (unit: string) => (size: number) => unit.repeat(Math.ceil(size / unit.length)).slice(0, size)

const OPEN = '$' + '{B:-'
const EMPTY = `${OPEN}}`

/** Texts on which a reader that looks back or ahead without bound costs the square of their length, or all of its stack. */
export const HOSTILE: Readonly<Record<string, (characters: number) => string>> = {
  'quotes that nothing closes': repeated('A="x\n'),
  'quotes in one line': repeated(`A='"`),
  backslashes: repeated('A="\\'),
  'white space': repeated('    \t '),
  'dollars and braces': repeated(`A=${OPEN}`),
  'references one after the other': (size) => `A=${repeated(EMPTY)(size)}`,
  'references inside one another': (size) => `A=${OPEN.repeat(size / 7)}${'}'.repeat(size / 7)}`,
  'a name given again and again': repeated('LOG_LEVEL=info\n'),
  'nearly an assignment': repeated('A A A\n'),
}
