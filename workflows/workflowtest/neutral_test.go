package workflowtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ofOneCloud are words that belong into a cloud's row (contract.Cloud) and its
// activities.
var ofOneCloud = regexp.MustCompile(`(?i)\b(aws|amazon|s3|route ?53|ec2|ebs|nlb|privatelink|sts|gcp|gce|gcs|google)\b|contract\.AWS\b|"aws\.`)

// The steps of a kind are the same in every cloud, so no workflow names one. What
// differs is in contract.Cloud.
func TestWorkflowsNameNoCloud(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	require.NoError(t, err)
	require.Greater(t, len(files), 30)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "workflowtest") {
			continue
		}
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for i, line := range strings.Split(string(raw), "\n") {
			if word := ofOneCloud.FindString(line); word != "" {
				t.Errorf("%s:%d names %q: %s", file, i+1, word, strings.TrimSpace(line))
			}
		}
	}
}
