{{- define "type_members" -}}
{{- $field := . -}}
{{- /* A field has the rules of its type, too; those stand below the type. */ -}}
{{- $type := $field.Type -}}
{{- if $type.UnderlyingType }}{{ if not $type.Name }}{{ $type = $type.UnderlyingType }}{{ end }}{{ end -}}
{{- $told := dict -}}
{{- range index $type.Markers "kubebuilder:validation:XValidation" }}{{ $_ := set $told .Message true }}{{ end -}}
{{- if eq $field.Name "metadata" -}}
As of every object of Kubernetes.
{{- else -}}
{{ markdownRenderFieldDoc (or $field.Doc $type.Doc) }}
{{- range index $field.Markers "kubebuilder:validation:XValidation" }}{{ if not (hasKey $told .Message) }}<br />_{{ markdownRenderFieldDoc .Message }}_{{ end }}{{ end }}
{{- end -}}
{{- end -}}
