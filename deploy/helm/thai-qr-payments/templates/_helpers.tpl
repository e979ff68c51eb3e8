{{- define "thaiqr.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* What never changes: the selectors of Deployments, Services and policies. */ -}}
{{- define "thaiqr.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "thaiqr.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "thaiqr.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "thaiqr.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Helm reads all numbers as floats, and would write 5000000 as 5e+06. */ -}}
{{- define "thaiqr.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{- /* Settings as variables, secrets as files. A secret among the settings would be readable for everybody. */ -}}
{{- define "thaiqr.env" -}}
{{- range $name := list "DATABASE_URL" "DATABASE_REPLICA_URL" "MIGRATION_DATABASE_URL" "REDIS_URL" "SECRET_KEY" "SECRET_KEY_FALLBACKS" "IDEMPOTENCY_KEYS" "FIELD_ENCRYPTION_KEYS" "CLOSE_SIGNING_KEY" "MONITORING_TOKEN" "SANDBOX_BANK_SECRET" "OMISE_SECRET_KEY" "OIDC_CLIENT_SECRET" "EMAIL_URL" }}
{{- if hasKey $.root.Values.settings $name }}
{{- fail (printf "settings.%s is a secret. Put it into the Secret %s, and its name into secret.keys." $name $.root.Values.secret.name) }}
{{- end }}
{{- end }}
{{- range $name := list "BASE_URL" "ALLOWED_HOSTS" }}
{{- if not (hasKey $.root.Values.settings $name) }}
{{- fail (printf "settings.%s is missing, see docs/settings.md." $name) }}
{{- end }}
{{- end }}
{{- range $name, $value := .root.Values.settings }}
- name: {{ $name }}
  value: {{ include "thaiqr.text" $value | quote }}
{{- end }}
{{- /* Only the worker of "default" has the folder. The others tell by the setting that its job runs. */ -}}
{{- if .root.Values.statementsClaim }}
- name: STATEMENTS_DIR
  value: /statements
{{- end }}
{{- if .root.Values.sandboxBank.enabled }}
- name: SANDBOX_ACQUIRER_URL
  value: http://{{ .root.Release.Name }}-sandbox:{{ include "thaiqr.acquirerPort" . }}
{{- end }}
{{- range $name := .root.Values.secret.keys }}
- name: {{ $name }}_FILE
  value: /run/secrets/thaiqr/{{ $name }}
{{- end }}
{{- range $name, $value := .more }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{- /* Where the sandbox bank takes charges of test cards. */ -}}
{{- define "thaiqr.acquirerPort" -}}8100{{- end }}

{{- define "thaiqr.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: secret, mountPath: /run/secrets/thaiqr, readOnly: true}
{{- end }}

{{- define "thaiqr.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
- name: secret
  secret:
    secretName: {{ .Values.secret.name }}
    defaultMode: 0440
{{- end }}

{{- /* A worker or beat that is frozen does not touch its file any more. One that only waits for the database does. */ -}}
{{- define "thaiqr.aliveProbe" -}}
livenessProbe:
  exec:
    command: [sh, -c, 'test -n "$(find /tmp/alive -mmin -2)"']
  initialDelaySeconds: 120
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 4
{{- end }}

{{- /* Deployment of one process. In: root, component, arguments, replicas, resources, more (variables), isWeb, statements. */ -}}
{{- define "thaiqr.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "thaiqr.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if not .isScaled }}
  replicas: {{ .replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  selector:
    matchLabels:
      {{- include "thaiqr.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "thaiqr.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 75
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "thaiqr.podSecurity" . | nindent 8 }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "thaiqr.selector" . | nindent 14 }}
      containers:
        - name: {{ .component }}
          image: {{ include "thaiqr.image" .root }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
            {{- toYaml .arguments | nindent 12 }}
          env:
            {{- include "thaiqr.env" . | nindent 12 }}
          securityContext:
            {{- include "thaiqr.containerSecurity" . | nindent 12 }}
          resources:
            {{- toYaml .resources | nindent 12 }}
          {{- if .isWeb }}
          ports:
            - {name: http, containerPort: 8000}
          # It answers while the process works, also while the database is away. /readyz is for people.
          startupProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 2
            failureThreshold: 60
          readinessProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 5
            timeoutSeconds: 5
          livenessProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 10
            timeoutSeconds: 10
            failureThreshold: 6
          # New requests go elsewhere before web ends.
          lifecycle:
            preStop:
              exec:
                command: [sleep, "10"]
          {{- else }}
          {{- include "thaiqr.aliveProbe" . | nindent 10 }}
          {{- end }}
          volumeMounts:
            {{- include "thaiqr.mounts" . | nindent 12 }}
            {{- if .statements }}
            - {name: statements, mountPath: /statements}
            {{- end }}
      volumes:
        {{- include "thaiqr.volumes" .root | nindent 8 }}
        {{- if .statements }}
        - name: statements
          persistentVolumeClaim:
            claimName: {{ .statements }}
        {{- end }}
{{- end }}

{{- /* One pod at a time may leave, so a node can be emptied and something still answers. */ -}}
{{- define "thaiqr.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "thaiqr.labels" .root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "thaiqr.selector" . | nindent 6 }}
{{- end }}

{{- define "thaiqr.autoscaler" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "thaiqr.labels" .root | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ .root.Release.Name }}-{{ .component }}
  minReplicas: {{ .replicas }}
  maxReplicas: {{ .autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ .autoscaling.cpuPercent }}}
  behavior:
    # A pod that leaves ends its tasks first. Short lulls are no reason.
    scaleDown: {stabilizationWindowSeconds: 600}
{{- end }}
