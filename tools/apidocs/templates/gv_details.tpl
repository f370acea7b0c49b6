{{- define "gvDetails" -}}
{{- $gv := . -}}
## {{ $gv.GroupVersionString }}

Kinds:{{ range $i, $kind := $gv.SortedKinds }}{{ if $i }},{{ end }} {{ $gv.TypeForKind . | markdownRenderTypeLink }}{{ end }}.
{{ range $gv.SortedKinds }}
{{- template "type" ($gv.TypeForKind .) }}
{{- end }}
### Types of {{ $gv.GroupVersionString }}
{{ range $gv.SortedTypes }}
{{- if not .GVK }}{{ template "type" . }}{{ end }}
{{- end }}
{{- end -}}
