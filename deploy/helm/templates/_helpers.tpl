{{/* labels of an object or a pod: list ROOT NAME COMPONENT */}}
{{- define "licet.labels" -}}
{{- $root := first . -}}
{{ include "licet.selector" (rest .) }}
{{ include "licet.group" $root }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end }}

{{/* labels of a template of jobs or claims, which helm does not create itself */}}
{{- define "licet.group" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: licet
{{- end }}

{{/* labels that select pods: list NAME COMPONENT */}}
{{- define "licet.selector" -}}
app.kubernetes.io/name: {{ first . }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{/* an image: list VALUES DEFAULT-TAG */}}
{{- define "licet.image" -}}
{{- $image := first . -}}
{{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default (last .) $image.tag }}{{ end }}
{{- end }}

{{/* what all pods have: list ROOT FSGROUP */}}
{{- define "licet.pod" -}}
enableServiceLinks: false
{{- with (first .).Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  {{- if last . }}
  fsGroup: 65532
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* what all containers have */}}
{{- define "licet.container" -}}
imagePullPolicy: IfNotPresent
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* a volume of a Secret: list NAME SECRET */}}
{{- define "licet.secret" -}}
- name: {{ first . }}
  secret:
    secretName: {{ last . }}
    defaultMode: 0440
{{- end }}

{{/* settings of nodes */}}
{{- define "licet.settings" -}}
{{- $all := dict
  "LICET_METRICS_LISTEN" ":9090"
  "LICET_INTERNAL_LISTEN" ":7070"
  "LICET_MASTER_KEY_FILE" "/etc/licet/master/master.keys"
  "LICET_DRAIN_DELAY" "20s"
  "LICET_SHUTDOWN_TIMEOUT" "20s"
  "LICET_PUBLIC_URL" .Values.publicURL
-}}
{{ toYaml (mergeOverwrite $all .Values.settings) }}
{{- end }}

{{/* access to the store, for nodes and for commands */}}
{{- define "licet.store" -}}
LICET_ETCD_ENDPOINTS: {{ include "licet.endpoints" . }}
LICET_ETCD_CA: /etc/licet/etcd/ca.crt
LICET_ETCD_CERT: /etc/licet/etcd/tls.crt
LICET_ETCD_KEY: /etc/licet/etcd/tls.key
{{- end }}

{{- define "licet.endpoints" -}}
{{- if .Values.etcd.enabled -}}
{{- range $i := until (int .Values.etcd.members) }}{{ if $i }},{{ end }}etcd-{{ $i }}.etcd:2379{{ end }}
{{- else -}}
{{- join "," .Values.externalEtcd.endpoints | required "etcd.enabled is false: externalEtcd.endpoints must have host:port of each member of your etcd" }}
{{- end }}
{{- end }}

{{/* the Secret of the certificate of nodes, and of backups */}}
{{- define "licet.clientSecret" -}}
{{- if .Values.etcd.enabled }}etcd-client-tls{{ else }}
{{- required "etcd.enabled is false: externalEtcd.clientSecret must name a Secret with ca.crt, tls.crt and tls.key" .Values.externalEtcd.clientSecret }}
{{- end }}
{{- end }}
{{- define "licet.maintenanceSecret" -}}
{{- if .Values.etcd.enabled }}etcd-maintenance-tls{{ else }}
{{- required "backups of your etcd need externalEtcd.maintenanceSecret, a Secret with ca.crt, tls.crt and tls.key; or set backups.enabled to false" .Values.externalEtcd.maintenanceSecret }}
{{- end }}
{{- end }}

{{/* a rule of a policy, with which a pod reaches the store */}}
{{- define "licet.toStore" -}}
{{- if .Values.etcd.enabled -}}
- to:
    - podSelector:
        matchLabels:
          {{- include "licet.selector" (list "etcd" "store") | nindent 10 }}
  ports:
    - protocol: TCP
      port: 2379
{{- else -}}
- to:
    {{- $networks := join "," .Values.externalEtcd.networks | required "etcd.enabled is false: externalEtcd.networks must have the networks of your etcd, such as 10.1.0.0/16; or set networkPolicies.enabled to false" }}
    {{- range splitList "," $networks }}
    - ipBlock:
        cidr: {{ . }}
    {{- end }}
  ports:
    {{- range .Values.externalEtcd.endpoints }}
    - protocol: TCP
      port: {{ regexFind "[0-9]+$" . }}
    {{- end }}
{{- end }}
{{- end }}

{{/* a rule of a policy, with which Prometheus reaches the port metrics */}}
{{- define "licet.fromPrometheus" -}}
- from:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: {{ .Values.monitoring.namespace }}
      podSelector:
        matchLabels:
          app.kubernetes.io/name: prometheus
  ports:
    - protocol: TCP
      port: metrics
{{- end }}
