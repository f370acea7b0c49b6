// Package deps holds dependencies in go.mod while the code that needs them is being written.
package deps

import (
	_ "github.com/aws/aws-sdk-go-v2/config"
	_ "github.com/aws/aws-sdk-go-v2/credentials"
	_ "github.com/aws/aws-sdk-go-v2/service/ec2"
	_ "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	_ "github.com/aws/aws-sdk-go-v2/service/iam"
	_ "github.com/aws/aws-sdk-go-v2/service/kms"
	_ "github.com/aws/aws-sdk-go-v2/service/route53"
	_ "github.com/aws/aws-sdk-go-v2/service/s3"
	_ "github.com/aws/aws-sdk-go-v2/service/sts"
	_ "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	_ "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	_ "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "go.temporal.io/sdk/contrib/envconfig"
	_ "go.temporal.io/sdk/testsuite"
	_ "go.temporal.io/sdk/worker"
	_ "golang.org/x/time/rate"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/yaml"
)
