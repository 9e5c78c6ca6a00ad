{{/* Names, and what more than one file says of a node. */}}

{{- define "holdfast.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.clusterId" -}}
{{- .Values.clusterId | default .Release.Name -}}
{{- end -}}

{{- define "holdfast.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{/* The headless service, which gives each pod a name of its own. */}}
{{- define "holdfast.nodesService" -}}
{{- include "holdfast.fullname" . }}-nodes
{{- end -}}

{{/* The domain below which each pod has its name. */}}
{{- define "holdfast.nodesDomain" -}}
{{- printf "%s.%s.svc.%s" (include "holdfast.nodesService" .) .Release.Namespace .Values.clusterDomain -}}
{{- end -}}

{{/* The name of the service that clients may begin with; each node's certificate has it, too. */}}
{{- define "holdfast.serviceHost" -}}
{{- printf "%s.%s.svc" (include "holdfast.fullname" .) .Release.Namespace -}}
{{- end -}}
