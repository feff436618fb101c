import { shellWord } from '../../core/daemon-record.ts'
import { WEB } from '../../core/service.ts'
import { type DeployFile, type Places, type Subject, WITNESS } from './subject.ts'

/** Where the definition is in an image; commands that are run there find it. */
const HOME = '/platform'
const PROGRAM = `${HOME}/node_modules/platformctl/bin/platformctl.js`

/** The arguments of a service's container, without where its store is. */
export function daemonWords({ definition }: Subject, service: string): readonly string[] {
  const config = definition === undefined ? [] : ['--config', `${HOME}/${definition}`]
  const schedule = service === WEB ? [] : ['--no-schedule']
  return ['daemon', ...config, '--service', service, '--host', '0.0.0.0', ...schedule]
}

export function dockerFiles(subject: Subject, { folder }: Pick<Places, 'folder'>): readonly DeployFile[] {
  const { name, definition, sources, services, tarballs, isLocked } = subject
  const file = shellWord(`${folder}Dockerfile`)
  const manifests = isLocked ? subject.manifests : tarballs
  const install = `npm ${isLocked ? 'ci' : 'install'} --omit=dev --ignore-scripts --no-audit --no-fund${isLocked ? '' : ` ./${tarballs[0]}`}`
  const whence = isLocked
    ? 'as the lock file has it'
    : 'from the tarball that npm pack makes in a clone of it'
  const copies = sources.map((one) => `COPY ${one} ${one}\n`).join('')
  const roles = services.map(({ name: service, port, health }) => {
    const check = ['health', '--no-config', '--url', `here=http://127.0.0.1:${port}${health}`, '--quiet']
    return `
FROM runtime AS ${service}
EXPOSE ${port}
HEALTHCHECK --interval=30s --timeout=6s --start-period=15s --retries=3 \\
  CMD ${list(['node', '--', PROGRAM, ...check])}
CMD ${list([...daemonWords(subject, service), '--data', '/data'])}
`
  })
  const dockerfile = `# syntax=docker/dockerfile:1
# One image a service, from the folder of ${definition ?? 'the tarball'}:
#   docker build -f ${file} --target web --build-arg BUILD_STAMP="$(git rev-parse HEAD)" -t ${name}-web .
# A witness on another machine runs the same image (docs/guides/witness.md):
#   docker run --detach --restart unless-stopped --no-healthcheck --env-file witness.env --volume witness:/data \\
#     --publish 127.0.0.1:${WITNESS.port}:${WITNESS.port} ${name}-web ${WITNESS.words.join(' ')} --host 0.0.0.0 --data /data
# By digest, so that a build is of what was looked at; Dependabot and Renovate raise it.
ARG NODE_IMAGE=node:24-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d

# platformctl ${whence}; its node_modules/platformctl/dist/sbom.cdx.json lists what that is.
FROM \${NODE_IMAGE} AS package
WORKDIR ${HOME}
COPY ${manifests.join(' ')} ./
RUN ${install}

FROM \${NODE_IMAGE} AS runtime
ARG BUILD_STAMP
LABEL org.opencontainers.image.title="${name}" \\
  org.opencontainers.image.revision="\${BUILD_STAMP}"
ENV NODE_ENV=production BUILD_STAMP="\${BUILD_STAMP}" PATH="${HOME}/node_modules/.bin:$PATH"
# The store's folder, when STORE_URL does not name another one.
RUN mkdir /data && chown 1000:1000 /data
VOLUME /data
WORKDIR ${HOME}
COPY --from=package ${HOME}/node_modules node_modules
${copies}USER 1000:1000
# A definition that lacks a file or a package fails here, not at the start.
RUN platformctl env list > /dev/null
ENTRYPOINT ${list(['node', '--', PROGRAM])}
${roles.join('')}`
  const context = ['**', ...manifests.map((one) => `!${one}`), ...sources.map((one) => `!${one}`)]
  return [
    { path: 'Dockerfile', text: dockerfile },
    { path: 'Dockerfile.dockerignore', text: `${context.join('\n')}\n` },
  ]
}

const list = (words: readonly string[]) => `[${words.map((word) => JSON.stringify(word)).join(', ')}]`
