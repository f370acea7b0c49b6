{{- define "gvList" -}}
# API reference

Written by `make generate` from the types of [api](../api); do not edit. The examples are files of [deploy/samples](../deploy/samples), and a test applies them.

Every refusal names the field, its value, the rule and the way out. The rules that are more than a closed list or a bound are quoted below a type, in the words of the refusal.
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{ end -}}
