{{- define "repertoire.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "repertoire.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "repertoire.labels" -}}
{{ include "repertoire.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "repertoire.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "repertoire.serviceAccount" -}}
{{- default (include "repertoire.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "repertoire.configSecret" -}}
{{- default (include "repertoire.fullname" .) .Values.existingConfigSecret -}}
{{- end -}}

{{/* The settings: what the chart knows, under what the values say. */}}
{{- define "repertoire.config" -}}
{{- $name := include "repertoire.fullname" . -}}
{{- $namespace := .Release.Namespace -}}
{{- $hosts := list $name (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) (printf "%s.%s.svc.cluster.local" $name $namespace) -}}
{{- if and .Values.ingress.enabled .Values.ingress.host -}}
{{- $hosts = append $hosts .Values.ingress.host -}}
{{- end -}}
{{- $config := dict "listen" "0.0.0.0:50051" "log_format" "json" "web" (dict "allowed_hosts" $hosts) -}}
{{- if .Values.tls.secretName -}}
{{- $_ := set $config "tls" (dict "certificate" "/etc/repertoire/tls/tls.crt" "key" "/etc/repertoire/tls/tls.key") -}}
{{- $_ := set $config "access" (dict "sign_in" "tokens") -}}
{{- else if hasKey .Values.config "tls" -}}
{{- $_ := set $config "access" (dict "sign_in" "tokens") -}}
{{- else -}}
{{- $_ := set $config "access" (dict "sign_in" "tokens" "behind_proxy" true) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) -}}
{{- end -}}

{{/* How a probe asks: Kubernetes speaks gRPC without TLS alone; the program itself asks over the socket in its data directory. */}}
{{- define "repertoire.probe" -}}
{{- if .exec -}}
exec:
  command: [/usr/bin/repertoire, status]
{{- else -}}
grpc:
  port: 50051
  service: {{ .service | quote }}
{{- end -}}
{{- end -}}
