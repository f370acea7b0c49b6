{{- define "rules" -}}
{{- range . }}
- {{ if .FieldPath }}`{{ trimPrefix "." .FieldPath }}`: {{ end }}{{ markdownRenderFieldDoc .Message }}
{{- end }}
{{- end -}}

{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}
{{ if $type.GVK }}### {{ else }}#### {{ end }}{{ $type.Name }}

{{ $type.Doc }}
{{ if $type.GVK }}
<!-- example: {{ $type.GVK.Kind }} -->
{{ else }}
{{ if $type.IsAlias }}A {{ markdownRenderTypeLink $type.UnderlyingType }}. {{ end }}In{{ range $i, $r := $type.SortedReferences }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $r }}{{ end }}.
{{ end }}
{{- with index $type.Markers "kubebuilder:validation:XValidation" }}
{{- template "rules" . }}
{{ end }}
{{- if $type.EnumValues }}
| Value | Meaning |
| --- | --- |
{{ range $type.EnumValues -}}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{ end -}}
{{ end -}}
{{- if $type.Members }}
| Field | Meaning | Default | Bounds |
| --- | --- | --- | --- |
{{ if $type.GVK -}}
| `apiVersion` _string_ | `{{ $type.GVK.Group }}/{{ $type.GVK.Version }}` | | |
| `kind` _string_ | `{{ $type.GVK.Kind }}` | | |
{{ end -}}
{{ range $type.Members -}}
| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ template "type_members" . }} | {{ with .Default }}`{{ . }}`{{ end }} | {{ if and (not $type.GVK) (not (has "Optional: {}" .Validation)) }}required<br />{{ end }}{{ range .Validation }}{{ if and (ne . "Optional: {}") (ne . "Required: {}") }}{{ markdownRenderFieldDoc . }}<br />{{ end }}{{ end }} |
{{ end -}}
{{ end -}}
{{- end -}}
{{- end -}}
