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
