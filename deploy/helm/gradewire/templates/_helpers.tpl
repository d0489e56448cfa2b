{{- define "gradewire.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of one part: (list . "front") */}}
{{- define "gradewire.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "gradewire.labels" -}}
{{- $root := index . 0 -}}
{{ include "gradewire.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}

{{- define "gradewire.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "gradewire.tritonUrl" -}}
{{- if eq .Values.triton.mode "external" -}}
{{- required "triton.url is needed with triton.mode=external" .Values.triton.url -}}
{{- else -}}
{{- printf "%s-triton:8001" (include "gradewire.name" .) -}}
{{- end -}}
{{- end -}}

{{/* A quantity of Kubernetes, such as 500m, 4, 1.5Gi, in thousandths of its unit. */}}
{{- define "gradewire.thousandths" -}}
{{- $text := toString . -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $factors := dict "m" 1.0 "" 1e3 "k" 1e6 "M" 1e9 "G" 1e12 "T" 1e15 "Ki" 1024e3 "Mi" 1048576e3 "Gi" 1073741824e3 "Ti" 1099511627776e3 -}}
{{- if not (hasKey $factors $unit) }}{{ fail (printf "resources: cannot read the quantity %s. Use a form such as 500m, 4 or 1.5Gi" $text) }}{{ end -}}
{{- mulf (trimSuffix $unit $text | float64) (get $factors $unit) | int64 -}}
{{- end -}}

{{/* Server processes of a pod if settings.processes is 0: counted like the server, but from the pod's resources, because a node has
more cores than a pod without a limit gets. An embedded judge takes a core and 3 GiB. */}}
{{- define "gradewire.processes" -}}
{{- $resources := .Values.resources -}}
{{- $cpu := dig "limits" "cpu" (dig "requests" "cpu" "1" $resources) $resources -}}
{{- $memory := dig "limits" "memory" (dig "requests" "memory" "1Gi" $resources) $resources -}}
{{- $judges := ternary 1 0 (and (ne .Values.judge.existingClaim "") (eq (.Values.settings.judge_backend | default "embedded") "embedded")) -}}
{{- $byCores := div (sub (include "gradewire.thousandths" $cpu | int64) (mul $judges 1000)) 2000 -}}
{{- $byMemory := div (sub (include "gradewire.thousandths" $memory | int64) (mul $judges 3 1073741824000)) 1073741824000 -}}
{{- max 1 (min $byCores $byMemory 8) -}}
{{- end -}}

{{- define "gradewire.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "gradewire.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The volume of built models, and the init container that fills it if it is not a claim. */}}
{{- define "gradewire.modelVolume" -}}
- name: models
{{- if eq .Values.models.mode "claim" }}
  persistentVolumeClaim: {claimName: {{ required "models.mode=claim needs a volume. Set models.existingClaim" .Values.models.existingClaim }}, readOnly: true}
{{- else }}
  emptyDir: {sizeLimit: {{ .Values.models.sizeLimit }}}
{{- end }}
{{- end -}}

{{- define "gradewire.modelBuilder" -}}
{{- if eq .Values.models.mode "build" }}
initContainers:
  - name: models
    image: {{ include "gradewire.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: {{ concat (list "models" "build") .Values.models.names .Values.models.buildArguments | toJson }}
    securityContext: {{- include "gradewire.containerSecurity" . | nindent 6 }}
    resources:
      requests: {cpu: 500m, memory: 1Gi}
      limits: {memory: 3Gi}
    volumeMounts:
      - {name: models, mountPath: /models}
      - {name: tmp, mountPath: /tmp}
{{- end }}
{{- end -}}
