import { readFileSync } from 'node:fs'
import path from 'node:path'
import { type Declaration, parseSync } from 'oxc-parser'

/**
 * docs/reference/api.md: what each subpath of the package exports, with its docstrings. Read from the sources with a parser, because the compiler has no API that a documentation tool could use.
 */
export function apiReference(input: {
  readonly root: string
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>
}): string {
  const modules = new Map<string, Module>()
  const load = (file: string): Module => {
    const known = modules.get(file)
    if (known) return known
    const loaded = readModule(input.root, file)
    modules.set(file, loaded)
    return loaded
  }
  const sections: string[] = []
  const told = new Map<string, string>()
  for (const [subpath, target] of Object.entries(input.exports)) {
    if (typeof target === 'string') continue
    const name = path.posix.join('platformctl', subpath)
    const entry = target.types.replace(/^\.\/dist\/types\//, 'src/').replace(/\.d\.ts$/, '.ts')
    const found = exportsOf(entry, load)
    const own = found.filter(({ symbol }) => !told.has(key(symbol)))
    for (const { symbol } of own) told.set(key(symbol), name)
    const again = found.filter((one) => !own.includes(one))
    sections.push(
      `## ${name}`,
      ...[...own.filter(({ symbol }) => symbol.isValue), ...own.filter(({ symbol }) => !symbol.isValue)]
        .filter(({ symbol }) => !isField(symbol))
        .map(({ as, symbol }) => entryOf(as, symbol)),
      ...(own.some(({ symbol }) => isField(symbol))
        ? [
            `Parts of [a definition](definition.md): ${own.flatMap(({ as, symbol }) => (isField(symbol) ? `\`${as}\`` : [])).join(', ')}.`,
          ]
        : []),
      ...(again.length === 0
        ? []
        : [
            `Also exported here: ${again.map(({ as, symbol }) => `\`${as}\` (${told.get(key(symbol))})`).join(', ')}.`,
          ]),
    )
  }
  return `${[
    '# API reference',
    '<!-- Made by `npm run make`. -->',
    'What each subpath exports. Fields and lists are `readonly`, which is left out here. Your editor shows the types that these name and that no subpath exports; TypeScript infers them.',
    ...sections,
  ].join('\n\n')}\n`
}

interface Sym {
  readonly file: string
  readonly name: string
  readonly isValue: boolean
  readonly doc: string
  /** The declaration without `export` and without bodies. */
  readonly text: string
}

interface Module {
  readonly symbols: ReadonlyMap<string, Sym>
  /** Local name → where it comes from, for ours. */
  readonly imports: ReadonlyMap<string, { readonly file: string; readonly name: string }>
  readonly exported: readonly {
    readonly as: string
    readonly local: string
    readonly from: string | undefined
  }[]
}

const key = ({ file, name }: Sym) => `${file}#${name}`

function readModule(root: string, file: string): Module {
  const source = readFileSync(path.join(root, file), 'utf8')
  const { program, module, comments } = parseSync(file, source)
  const resolve = (request: string) => path.posix.join(path.posix.dirname(file), request)
  const symbols = new Map<string, Sym>()
  for (const node of program.body) {
    const declaration =
      node.type === 'ExportNamedDeclaration' && node.declaration ? node.declaration : (node as Declaration)
    const before = comments.findLast(({ end }) => end <= node.start)
    const near = before && before.type === 'Block' && /^\s*$/.test(source.slice(before.end, node.start))
    const doc = near && before.value.startsWith('*') ? docText(before.value) : ''
    for (const { name, isValue, text } of declared(declaration, source))
      symbols.set(name, { file, name, isValue, doc, text })
  }
  const imports = new Map<string, { file: string; name: string }>()
  for (const { moduleRequest, entries } of module.staticImports) {
    if (!moduleRequest.value.startsWith('.')) continue
    for (const { importName, localName } of entries)
      imports.set(localName.value, {
        file: resolve(moduleRequest.value),
        name: importName.name ?? localName.value,
      })
  }
  const exported = module.staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ exportName, importName, localName, moduleRequest }) => {
      const local = importName.name ?? localName.name
      const as = exportName.name ?? local
      return as == null || local == null
        ? []
        : [{ as, local, from: moduleRequest ? resolve(moduleRequest.value) : undefined }]
    }),
  )
  return { symbols, imports, exported }
}

function declared(
  node: Declaration,
  source: string,
): readonly { readonly name: string; readonly isValue: boolean; readonly text: string }[] {
  const slice = (end: number) => source.slice(node.start, end).trim()
  switch (node.type) {
    case 'FunctionDeclaration':
      return [{ name: node.id?.name ?? '', isValue: true, text: slice(node.body?.start ?? node.end) }]
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
      return [{ name: node.id.name, isValue: false, text: slice(node.end) }]
    case 'ClassDeclaration': {
      const fields = node.body.body.flatMap((member) =>
        member.type === 'PropertyDefinition' && member.key.type !== 'PrivateIdentifier'
          ? `  ${source.slice(member.start, member.end).trim()}\n`
          : [],
      )
      return [
        {
          name: node.id?.name ?? '',
          isValue: true,
          text: `${slice(node.body.start)} {\n${fields.join('')}}`,
        },
      ]
    }
    case 'VariableDeclaration':
      return node.declarations.flatMap(({ id, init }) => {
        if (id.type !== 'Identifier') return []
        const isFunction = init?.type === 'ArrowFunctionExpression'
        const text = isFunction
          ? `const ${source.slice(id.start, init.body.start).replace(/\s*=>\s*$/, '')}`
          : slice(node.end)
        return [{ name: id.name, isValue: true, text: text.length > MOST_TEXT ? `const ${id.name}` : text }]
      })
    default:
      return []
  }
}

const MOST_TEXT = 1500

/** The public names of a file, through its re-exports. */
function exportsOf(
  file: string,
  load: (file: string) => Module,
): readonly { readonly as: string; readonly symbol: Sym }[] {
  const { exported } = load(file)
  return exported.map(({ as, local, from }) => {
    const symbol = find(from ?? file, local, load)
    if (symbol === undefined)
      throw new Error(`${file}: cannot find the declaration of ${as}, which is public`)
    if (symbol.isValue && symbol.doc === '')
      throw new Error(`${symbol.file}: ${as} is public and has no docstring`)
    return { as, symbol }
  })
}

function find(file: string, name: string, load: (file: string) => Module): Sym | undefined {
  const { symbols, imports, exported } = load(file)
  const own = symbols.get(name)
  if (own) return own
  const imported =
    imports.get(name) ??
    exported.flatMap(({ as, local, from }) => (as === name && from ? [{ file: from, name: local }] : []))[0]
  return imported && find(imported.file, imported.name, load)
}

/** Types whose fields stand on the page of the definition. */
const isField = ({ file, isValue }: Sym) => !isValue && file === 'src/platform/definition.ts'

/** Types whose parts are nobody's to use: those of the store, and what computes types from a definition. */
const isInner = ({ file, isValue, text, doc }: Sym) =>
  !isValue && (file === 'src/core/store/store.ts' || (doc !== '' && / extends [^{]*\?/.test(text)))

function entryOf(as: string, symbol: Sym): string {
  const { doc, text } = symbol
  return [
    `### ${as}`,
    ...(doc === '' ? [] : [doc]),
    ...(isInner(symbol) ? [] : [`\`\`\`ts\n${text.replaceAll(/\breadonly /g, '')}\n\`\`\``]),
  ].join('\n\n')
}

/** A docstring as a paragraph, with links where it cites the contract. */
function docText(comment: string): string {
  return comment
    .slice(1)
    .split('\n')
    .map((line) => line.trim().replace(/^\* ?/, ''))
    .join(' ')
    .replace(/\s+/g, ' ')
    .replace(/CONTRACT §[\d.]+/g, '[$&](contract.md)')
    .trim()
}
