import { WEB } from '../../core/service.ts'
import { daemonWords } from './docker.ts'
import type { DeployFile, Subject } from './subject.ts'

/** Where a pod finds its secret. */
const SECRETS = '/run/secrets/platform'

/** The services as deployments whose pods migrate the store before they serve; one pod of web at a time runs the schedule. */
export function kubernetesFiles(subject: Subject): readonly DeployFile[] {
  const { name, services } = subject
  const secrets = services.map(
    ({ name: role }) =>
      `#   kubectl create secret generic ${name}-${role} --from-file=env=${role}.env --from-literal=STORE_URL=postgres://…`,
  )
  const addresses = new Map(services.flatMap((service) => service.addresses))
  const settings = [...addresses].map(([variable, address]) => `  ${variable}: ${address}\n`).sort()
  const common = `# The services and their settings. Each service has its own secret, mounted as files: an env file, which may be empty, and
# the address of the store, without which no pod starts.
${secrets.join('\n')}
# platformctl env list says which service reads which variable. Give each image by its digest (@sha256:…) where your
# registry tells it; a tag can be moved.
# Replace registry.example.com by your registry, and BUILD_STAMP by the stamp that the images were built with.
apiVersion: v1
kind: ServiceAccount
metadata:
  name: ${name}
automountServiceAccountToken: false
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}
data:
  NEXT_PUBLIC_SITE_URL: https://www.example.com
${settings.join('')}  DEPLOY_ENVIRONMENT: production
`
  const parts = services.flatMap((service) => [
    ...workload(subject, service),
    networkPolicy(subject, service),
  ])
  return [{ path: 'platform.yaml', text: [common, ...parts].join('---\n') }]
}

type Service = Subject['services'][number]

function workload(subject: Subject, { name: role, port, health }: Service): readonly string[] {
  const { name } = subject
  const labels = `{ app.kubernetes.io/part-of: ${name}, app.kubernetes.io/name: ${role} }`
  const container = (words: readonly string[]) => `image: registry.example.com/${name}-${role}:BUILD_STAMP
          args: [${[...words, '--env-file', `${SECRETS}/env`, '--data', '/tmp/data'].join(', ')}]
          envFrom:
            - configMapRef: { name: ${name} }
          env:
            # Required here, and only here: pods share nothing, so their store cannot be a file.
            - { name: STORE_URL_FILE, value: ${SECRETS}/STORE_URL }
          resources:
            requests: { cpu: 100m, memory: 128Mi }
            limits: { memory: 512Mi }
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          volumeMounts:
            - { name: tmp, mountPath: /tmp }
            - { name: secrets, mountPath: ${SECRETS}, readOnly: true }`
  return [
    `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${role}
  labels: ${labels}
spec:
  replicas: 2
  selector:
    matchLabels: { app.kubernetes.io/name: ${role} }
  strategy:
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  template:
    metadata:
      labels: ${labels}
    spec:
      serviceAccountName: ${name}
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 120
      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
        seccompProfile: { type: RuntimeDefault }
      initContainers:
        - name: migrate
          ${container(['db', 'migrate'])}
      containers:
        # ${role === WEB ? 'All replicas have the schedule: each hour, the store gives it to one of them.' : 'The schedule is run by web.'}
        - name: ${role}
          ${container(daemonWords(subject, role))}
          ports:
            - { name: http, containerPort: ${port} }
          # Ready: asks for health, which is 503 while a probe fails. Alive: only whether it still accepts connections,
          # because a restart heals no dependency.
          startupProbe:
            tcpSocket: { port: http }
            periodSeconds: 2
            failureThreshold: 30
          readinessProbe:
            httpGet: { path: ${health}, port: http }
            periodSeconds: 10
            timeoutSeconds: 6
          livenessProbe:
            tcpSocket: { port: http }
            periodSeconds: 20
            failureThreshold: 3
      volumes:
        - name: tmp
          emptyDir: { sizeLimit: 64Mi }
        - name: secrets
          # 288 is 0440: readable by fsGroup.
          secret: { secretName: ${name}-${role}, defaultMode: 288 }
`,
    `apiVersion: v1
kind: Service
metadata:
  name: ${role}
  labels: ${labels}
spec:
  selector: { app.kubernetes.io/name: ${role} }
  ports:
    - { name: http, port: ${port}, targetPort: http }
`,
    `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: ${role}
spec:
  minAvailable: 1
  selector:
    matchLabels: { app.kubernetes.io/name: ${role} }
`,
  ]
}

function networkPolicy({ name }: Subject, { name: role, port }: Service): string {
  return `# Who may talk to ${role}: the ingress controller and the other services. Change ingress-nginx to the namespace of yours.
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: ${role}
spec:
  podSelector:
    matchLabels: { app.kubernetes.io/name: ${role} }
  policyTypes: [Ingress, Egress]
  ingress:
    - from:
        - podSelector:
            matchLabels: { app.kubernetes.io/part-of: ${name} }
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
            matchLabels: { app.kubernetes.io/part-of: ${name} }
`
}
