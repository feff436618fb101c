import { parseSync, visitorKeys } from 'oxc-parser'

/** A small change to a source file, of the kind that passes a review. */
export interface Mutant {
  readonly kind: string
  readonly start: number
  readonly end: number
  readonly text: string
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

const OPPOSITE: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '&&': '||',
  '||': '&&',
}
const SQL = /\b(SELECT|UPDATE|INSERT|DELETE|PRAGMA|CREATE|ORDER BY|FOR UPDATE|WHERE)\b/
const SQL_FRAGMENTS: readonly (readonly [RegExp, string])[] = [
  [/ ASC\b/g, ' DESC'],
  [/ DESC\b/g, ' ASC'],
  [/ FOR UPDATE\b/g, ''],
  [/ SKIP LOCKED\b/g, ''],
  [/ NOWAIT\b/g, ''],
  [/ DISTINCT\b/g, ''],
  [/ <= /g, ' < '],
  [/ < /g, ' <= '],
  [/ >= /g, ' > '],
  [/ > /g, ' >= '],
  [/ AND /g, ' OR '],
  [/\bIS NOT NULL\b/g, 'IS NULL'],
  [/\bIS NULL\b/g, 'IS NOT NULL'],
  [/\bFULL\b/g, 'NORMAL'],
  [/\bIMMEDIATE\b/g, 'DEFERRED'],
]

/** Every mutant of a TypeScript source. */
export function mutantsOf(file: string, source: string): readonly Mutant[] {
  const mutants: Mutant[] = []
  const add = (kind: string, { start, end }: Pick<Node, 'start' | 'end'>, text: string) =>
    mutants.push({ kind, start, end, text })
  const textOf = ({ start, end }: Node) => source.slice(start, end)

  function visit(node: Node, parent: Node | undefined): void {
    // Types, imports and the names of properties are not run.
    if (/^TS(?!As|Satisfies|NonNull)/.test(node.type) || /^Import|^ExportAll/.test(node.type)) return
    // Prose for readers of a schema, which no program reads.
    if (node.type === 'Property' && (node.key as Node).name === 'description') return
    plant(node, parent)
    for (const key of visitorKeys[node.type] ?? []) {
      if (key === 'key' && node.computed !== true) continue
      if (/^(source|typeAnnotation|typeArguments|typeParameters|returnType)$/.test(key)) continue
      const below = node[key]
      for (const child of Array.isArray(below) ? below : [below]) if (isNode(child)) visit(child, node)
    }
  }

  function plant(node: Node, parent: Node | undefined): void {
    switch (node.type) {
      case 'IfStatement':
      case 'ConditionalExpression':
        for (const always of ['true', 'false']) add('condition', node.test as Node, `(${always})`)
        break
      case 'BinaryExpression':
      case 'LogicalExpression':
        operator(node)
        break
      case 'Literal':
        literal(node, parent)
        break
      case 'TemplateLiteral':
        if (
          parent?.type !== 'TaggedTemplateExpression' &&
          textOf(node).length > 2 &&
          !isSentence(textOf(node))
        )
          add('string', node, "''")
        break
      case 'TemplateElement':
        sql(node)
        break
      case 'ExpressionStatement':
        if (/^(Call|Await)/.test((node.expression as Node).type)) add('call removed', node, ';')
        break
      case 'AwaitExpression':
        add('await removed', { start: node.start, end: (node.argument as Node).start }, '')
        break
      case 'Property':
        if (parent?.type === 'ObjectExpression') dropped(node)
        break
      case 'SpreadElement':
        if (parent?.type === 'ObjectExpression') dropped(node)
        break
      case 'CatchClause':
        if (((node.body as Node).body as Node[]).length > 0) add('catch emptied', node.body as Node, '{}')
        break
      case 'TryStatement':
        if (isNode(node.finalizer)) add('finally emptied', node.finalizer, '{}')
        break
      case 'BlockStatement':
        if (/Function/.test(parent?.type ?? '') && (node.body as Node[]).length > 0)
          add('early return', { start: node.start + 1, end: node.start + 1 }, 'return;')
        break
    }
  }

  function operator(node: Node): void {
    const { left, right } = node as Node & { readonly left: Node; readonly right: Node }
    const between = { start: left.end, end: right.start }
    if (node.operator === '??') add('fallback', node, textOf(left))
    const opposite = OPPOSITE[String(node.operator)]
    const joins =
      node.operator === '+' &&
      [left, right].some(({ type, value }) => type === 'TemplateLiteral' || typeof value === 'string')
    if (opposite !== undefined && !joins)
      add(
        'operator',
        between,
        source.slice(between.start, between.end).replace(String(node.operator), opposite),
      )
  }

  function literal(node: Node, parent: Node | undefined): void {
    if (typeof node.value === 'number') {
      for (const by of [1, -1]) add('constant', node, `(${node.value + by})`)
    } else if (typeof node.value === 'boolean') add('constant', node, String(!node.value))
    else if (typeof node.value === 'string') {
      if (node.value !== '' && parent?.type !== 'ExpressionStatement' && !isSentence(node.value))
        add('string', node, "''")
      sql(node)
    } else if ('regex' in node) {
      const text = textOf(node)
      for (const [find, put] of [
        [/^\/\^/, '/'],
        [/\$\/(\w*)$/, '/$1'],
        [/i(\w*)$/, '$1'],
      ] as const)
        if (find.test(text)) add('pattern', node, text.replace(find, put))
    }
  }

  function sql(node: Node): void {
    const text = textOf(node)
    if (!SQL.test(text)) return
    for (const [find, put] of SQL_FRAGMENTS)
      for (const { index, 0: found } of text.matchAll(find))
        add('sql', { start: node.start + index, end: node.start + index + found.length }, put)
  }

  function dropped(node: Node): void {
    const after = /^\s*,/.exec(source.slice(node.end))?.[0].length ?? 0
    add('property dropped', { start: node.start, end: node.end + after }, '')
  }

  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`)
  // Every node of the syntax tree has these.
  visit(program as unknown as Node, undefined)
  return mutants
}

/** Whether a text is prose, which is not mutated: a review would notice its loss, and no test should repeat it. */
function isSentence(text: string): boolean {
  return (
    /(?:^|[\s`])(?:[\p{L}’']+[.,:;]?\s+){3}[\p{L}’']+/u.test(text) && !SQL.test(text) && !text.includes('<')
  )
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}
