import { WEB } from '../../core/service.ts'
import { daemonWords } from './docker.ts'
import { type DeployFile, type Subject, WITNESS, yamlName } from './subject.ts'

const SECRETS = '/run/secrets/platform'

const POD_SECURITY = `      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
        seccompProfile: { type: RuntimeDefault }
`
const CONTAINER_SECURITY = `          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
`
const ALIVE = `          livenessProbe:
            tcpSocket: { port: http }
            periodSeconds: 20
            failureThreshold: 3
`

const volumes = (secret: string) => `        - name: tmp
          emptyDir: { sizeLimit: 64Mi }
        - name: secrets
          # 288 is 0440: readable by fsGroup.
          secret: { secretName: ${secret}, defaultMode: 288 }
`

const head = (version: string, kind: string, name: string, labels?: string) => `apiVersion: ${version}
kind: ${kind}
metadata:
  name: ${name}
${labels === undefined ? '' : `  labels: ${labels}\n`}`

const endpoint = (name: string, labels: string, port: number) => `${head('v1', 'Service', name, labels)}spec:
  selector: { app.kubernetes.io/name: ${name} }
  ports:
    - { name: http, port: ${port}, targetPort: http }
`

/** The services as deployments whose pods migrate the store before they serve; one pod of web at a time runs the schedule. */
export function kubernetesFiles(subject: Subject): readonly DeployFile[] {
  const { name, services } = subject
  const secrets = services.map(
    ({ name: role }) =>
      `#   kubectl create secret generic ${name}-${role} --from-file=env=${role}.env --from-literal=STORE_URL=postgres://…`,
  )
  const addresses = new Map(services.flatMap((service) => service.addresses))
  const settings = [...addresses].map(([variable, address]) => `  ${yamlName(variable)}: ${address}\n`).sort()
  const common = `# The services and their settings. Each service has its own secret, mounted as files: an env file, which may be empty, and
# the address of the store, without which no pod starts.
${secrets.join('\n')}
# platformctl env list says which service reads which variable. Give each image by its digest (@sha256:…) where your
# registry tells it; a tag can be moved.
# Replace registry.example.com by your registry, and BUILD_STAMP by the stamp that the images were built with.
${head('v1', 'ServiceAccount', yamlName(name))}automountServiceAccountToken: false
---
${head('v1', 'ConfigMap', yamlName(name))}data:
  NEXT_PUBLIC_SITE_URL: https://www.example.com
${settings.join('')}  DEPLOY_ENVIRONMENT: production
`
  const parts = services.flatMap((one) => [...workload(subject, one), networkPolicy(subject, one)])
  return [
    { path: 'platform.yaml', text: [common, ...parts].join('---\n') },
    { path: 'witness.yaml', text: witness(subject), optional: true },
  ]
}

type Service = Subject['services'][number]

function workload(subject: Subject, { name: role, port, health }: Service): readonly string[] {
  const { name } = subject
  const labels = `{ app.kubernetes.io/part-of: ${yamlName(name)}, app.kubernetes.io/name: ${yamlName(role)} }`
  const container = (words: readonly string[]) => `image: registry.example.com/${name}-${role}:BUILD_STAMP
          args: [${[...words, '--env-file', `${SECRETS}/env`, '--data', '/tmp/data'].map(yamlName).join(', ')}]
          envFrom:
            - configMapRef: { name: ${yamlName(name)} }
          env:
            # Required here, and only here: pods share nothing, so their store cannot be a file.
            - { name: STORE_URL_FILE, value: ${SECRETS}/STORE_URL }
          resources:
            requests: { cpu: 100m, memory: 128Mi }
            limits: { memory: 512Mi }
${CONTAINER_SECURITY}          volumeMounts:
            - { name: tmp, mountPath: /tmp }
            - { name: secrets, mountPath: ${SECRETS}, readOnly: true }`
  return [
    `${head('apps/v1', 'Deployment', yamlName(role), labels)}spec:
  replicas: 2
  selector:
    matchLabels: { app.kubernetes.io/name: ${yamlName(role)} }
  strategy:
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  template:
    metadata:
      labels: ${labels}
    spec:
      serviceAccountName: ${yamlName(name)}
      automountServiceAccountToken: false
      # Else the address of each service here is a variable, which may have the name of one of yours.
      enableServiceLinks: false
      # Longer than --grace, in which load balancers notice, and --deadline together.
      terminationGracePeriodSeconds: 120
${POD_SECURITY}      initContainers:
        - name: migrate
          ${container(['db', 'migrate'])}
      containers:
        # ${role === WEB ? 'All replicas look for due lessons and share them.' : 'The schedule is run by web.'}
        - name: ${yamlName(role)}
          ${container([...daemonWords(subject, role), '--grace', '15'])}
          ports:
            - { name: http, containerPort: ${port} }
          # Ready: asks for health, which is 503 while a probe fails. Alive: only whether it still accepts connections,
          # because a restart heals no dependency.
          startupProbe:
            tcpSocket: { port: http }
            periodSeconds: 2
            failureThreshold: 30
          readinessProbe:
            httpGet: { path: ${yamlName(health)}, port: http }
            periodSeconds: 10
            timeoutSeconds: 6
${ALIVE}      volumes:
${volumes(yamlName(`${name}-${role}`))}`,
    endpoint(yamlName(role), labels, port),
    `${head('policy/v1', 'PodDisruptionBudget', yamlName(role))}spec:
  minAvailable: 1
  selector:
    matchLabels: { app.kubernetes.io/name: ${yamlName(role)} }
`,
  ]
}

function networkPolicy({ name }: Subject, { name: role, port }: Service): string {
  return `# Who may talk to ${role}: the ingress controller and the other services. Change ingress-nginx to the namespace of yours.
${head('networking.k8s.io/v1', 'NetworkPolicy', yamlName(role))}spec:
  podSelector:
    matchLabels: { app.kubernetes.io/name: ${yamlName(role)} }
  policyTypes: [Ingress, Egress]
  ingress:
    - from:
        - podSelector:
            matchLabels: { app.kubernetes.io/part-of: ${yamlName(name)} }
        - namespaceSelector:
            matchLabels: { kubernetes.io/metadata.name: ingress-nginx }
      ports:
        - { protocol: TCP, port: ${port} }
  egress:
    - to:
        - namespaceSelector: {}
      ports:
        - { protocol: UDP, port: 53 }
        - { protocol: TCP, port: 53 }
    # Providers and the database; not the cloud's metadata service, which gives credentials to anybody who asks.
    - to:
        - ipBlock: { cidr: 0.0.0.0/0, except: [169.254.0.0/16] }
        - ipBlock: { cidr: "::/0", except: ["fe80::/10", "fd00:ec2::254/128"] }
    - to:
        - podSelector:
            matchLabels: { app.kubernetes.io/part-of: ${yamlName(name)} }
`
}

/** One pod for another cluster, with a volume, so that a restart repeats no alert. */
function witness({ name }: Subject): string {
  const words = [...WITNESS.words, '--host', '0.0.0.0', '--env-file', `${SECRETS}/env`, '--data', '/data']
  const labels = `{ app.kubernetes.io/part-of: ${yamlName(name)}, app.kubernetes.io/name: witness }`
  return `# A witness, in another cluster than the platform (docs/guides/witness.md). witness.env holds WITNESS_SECRET, which the platform
# lists as NAME:SECRET, and the variables of an alert channel:
#   kubectl create secret generic ${name}-witness --from-file=env=witness.env
# Replace the registry and BUILD_STAMP, the address of the platform and the name of the witness; add --peer and the address
# of each other witness. The status page is at the service's port; give it an address of its own.
${head('v1', 'PersistentVolumeClaim', 'witness')}spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests: { storage: 100Mi }
---
${head('apps/v1', 'Deployment', 'witness', labels)}spec:
  replicas: 1
  selector:
    matchLabels: { app.kubernetes.io/name: witness }
  # Its volume has one user at a time.
  strategy: { type: Recreate }
  template:
    metadata:
      labels: ${labels}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
${POD_SECURITY}      containers:
        - name: witness
          image: registry.example.com/${name}-web:BUILD_STAMP
          args: [${words.map((word) => JSON.stringify(word)).join(', ')}]
          resources:
            requests: { cpu: 10m, memory: 64Mi }
            limits: { memory: 256Mi }
${CONTAINER_SECURITY}          ports:
            - { name: http, containerPort: ${WITNESS.port} }
          # It is ready, and serves the last known page, also when the platform is not.
          readinessProbe:
            httpGet: { path: /health, port: http }
            periodSeconds: 10
${ALIVE}          volumeMounts:
            - { name: data, mountPath: /data }
            - { name: tmp, mountPath: /tmp }
            - { name: secrets, mountPath: ${SECRETS}, readOnly: true }
      volumes:
        - name: data
          persistentVolumeClaim: { claimName: witness }
${volumes(`${name}-witness`)}---
${endpoint('witness', labels, WITNESS.port)}`
}
