import { expect, test } from 'vitest'
import { parseEnvFile } from '../../../src/core/env/reader.ts'
import { contract } from '../../support/learning.ts'

test.each(['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'NODE_TLS_REJECT_UNAUTHORIZED', 'NODE_ANYTHING'])(
  'a long file hides no finding about %s',
  (name) => {
    const lines = Array.from({ length: 500 }, (_, index) => `OTHER_${index}=${index}`)
    const text = lines.toSpliced(250, 0, `export ${name}=canary`).join('\n')
    expect(parseEnvFile(contract, text, '.env').findings).toMatchObject([
      { id: 'runtime-variable', present: [name], location: { line: 251 } },
    ])
  },
)
