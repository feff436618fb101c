import { defineConfig } from 'vitest/config'

// One project a kind of need: `main` runs anywhere with Node and npm; the others say aloud what they need.
const project = (
  name: string,
  include: string[],
  exclude: string[] = [],
  env: Record<string, string> = { NODE_EXTRA_CA_CERTS: '' },
) => ({
  test: {
    name,
    include,
    exclude,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    env,
  },
})

export default defineConfig({
  test: {
    globalSetup: ['test/support/build.ts'],
    projects: [
      project('main', ['test/**/*.test.ts'], ['test/{pack,browser,servers,load,examples}/**']),
      project('pack', ['test/pack/**/*.test.ts']),
      // Installs from the registry, which may need the machine's own certificates.
      project('examples', ['test/examples/**/*.test.ts'], [], {}),
      project('browser', ['test/browser/**/*.test.ts']),
      project('servers', ['test/servers/**/*.test.ts']),
      project('load', ['test/load/**/*.test.ts']),
    ],
  },
})
