import { parseSync, Visitor } from 'oxc-parser'
import { parseAst } from 'rolldown/parseAst'

/**
 * Wraps the top-level functions of a chunk in brackets. V8 compiles a function in brackets when the
 * file is loaded (v8.dev/blog/preparser#pife), and Node's compile cache keeps only what is compiled by then: all else
 * is compiled again at each start. Declared functions go first, because a constant cannot be used before its line.
 */
export function compiledOnLoad(code: string): string {
  const declared: string[] = []
  let rest = ''
  let end = 0
  for (const statement of parseAst(code).body) {
    if (statement.type === 'FunctionDeclaration' && statement.id) {
      rest += code.slice(end, statement.start)
      declared.push(`${statement.id.name}=(${code.slice(statement.start, statement.end)})`)
      end = statement.end
    } else if (statement.type === 'VariableDeclaration') {
      for (const { init } of statement.declarations) {
        if (init?.type !== 'ArrowFunctionExpression' && init?.type !== 'FunctionExpression') continue
        rest += `${code.slice(end, init.start)}(${code.slice(init.start, init.end)})`
        end = init.end
      }
    }
  }
  return `${declared.length > 0 ? `const ${declared.join(',')};` : ''}${rest}${code.slice(end)}`
}

/**
 * Starts a line at each statement, class member and function in an object. Node prints the line on which an uncaught
 * error arose, and a chunk without white space is a single line of up to a megabyte.
 */
export function statementsOnLines(code: string): string {
  const starts = new Set<number>()
  const begin = (nodes: readonly { readonly start: number }[]) => {
    for (const { start } of nodes) starts.add(start)
  }
  new Visitor({
    Program: ({ body }) => begin(body),
    BlockStatement: ({ body }) => begin(body),
    StaticBlock: ({ body }) => begin(body),
    SwitchCase: ({ consequent }) => begin(consequent),
    ClassBody: ({ body }) => begin(body),
    VariableDeclaration: ({ declarations }) => begin(declarations.slice(1)),
    Property: (property) => {
      if (/Function/.test(property.value.type)) begin([property])
    },
  }).visit(parseSync('chunk.js', code).program)
  starts.delete(0)
  let end = 0
  let lines = ''
  for (const start of [...starts].sort((a, b) => a - b)) {
    lines += `${code.slice(end, start).trimEnd()}\n`
    end = start
  }
  return lines + code.slice(end)
}
