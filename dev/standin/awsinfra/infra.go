// Package awsinfra stands in for the infrastructure part of Gardener's AWS
// extension: it makes in the emulator what that makes in AWS, with its names and
// tags, in its order, and fails as it does.
//
// Everything is named after the technicalID ("shoot--<project>--<shoot>") and,
// where the resource takes tags, tagged kubernetes.io/cluster/<technicalID>=1.
// Resources are found again by these, so a second run adopts what the first one
// made. Source: the names and order of
// gardener-extension-provider-aws/pkg/controller/infrastructure/infraflow.
package awsinfra

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/dev/awsproxy"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

// clientName is how the calls appear in the proxy's records.
const clientName = "gardener-infrastructure"

// Infrastructure implements gardenlet.Infrastructure.
type Infrastructure struct {
	garden   client.Reader
	endpoint string
	log      *slog.Logger
}

var _ gardenlet.Infrastructure = (*Infrastructure)(nil)

// New returns the stand-in. garden reaches the cluster that serves Shoots,
// bindings and Secrets; endpoint is the AWS proxy's URL.
func New(garden *rest.Config, endpoint string, log *slog.Logger) (*Infrastructure, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), gardencorev1beta1.AddToScheme(scheme), securityv1alpha1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("awsinfra: %w", err)
	}
	reader, err := client.New(garden, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("awsinfra: reach the garden: %w", err)
	}
	if log == nil {
		log = slog.Default()
	}
	return &Infrastructure{garden: reader, endpoint: endpoint, log: log}, nil
}

// ConfigFor is an SDK configuration with the credentials that a Shoot is bound
// to, for components that run in the Shoot with them. name appears in the
// proxy's records.
func (i *Infrastructure) ConfigFor(ctx context.Context, namespace, shoot, name string) (aws.Config, error) {
	var object gardencorev1beta1.Shoot
	if err := i.garden.Get(ctx, client.ObjectKey{Namespace: namespace, Name: shoot}, &object); err != nil {
		return aws.Config{}, fmt.Errorf("read shoot %s/%s: %w", namespace, shoot, err)
	}
	return i.configOf(ctx, &object, name)
}

// configOf follows the Shoot's binding to its Secret.
func (i *Infrastructure) configOf(ctx context.Context, shoot *gardencorev1beta1.Shoot, name string) (aws.Config, error) {
	ref, err := i.secretOf(ctx, shoot)
	if err != nil {
		return aws.Config{}, err
	}
	var secret corev1.Secret
	if err := i.garden.Get(ctx, ref, &secret); err != nil {
		return aws.Config{}, fmt.Errorf("read the credentials of shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	id, key := string(secret.Data["accessKeyID"]), string(secret.Data["secretAccessKey"])
	if id == "" || key == "" {
		return aws.Config{}, &gardenlet.InfraError{
			Code:    string(gardencorev1beta1.ErrorConfigurationProblem),
			Message: fmt.Sprintf("secret %s lacks accessKeyID or secretAccessKey", ref),
		}
	}
	return awsproxy.ClientConfig(i.endpoint, shoot.Spec.Region, id, key, name), nil
}

func (i *Infrastructure) secretOf(ctx context.Context, shoot *gardencorev1beta1.Shoot) (client.ObjectKey, error) {
	if name := shoot.Spec.CredentialsBindingName; name != nil {
		var binding securityv1alpha1.CredentialsBinding
		if err := i.garden.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, &binding); err != nil {
			return client.ObjectKey{}, fmt.Errorf("read credentialsbinding %s/%s: %w", shoot.Namespace, *name, err)
		}
		if kind := binding.CredentialsRef.Kind; kind != "Secret" {
			return client.ObjectKey{}, fmt.Errorf("credentialsbinding %s/%s refers to a %s; the devstack knows Secrets only", shoot.Namespace, *name, kind)
		}
		return client.ObjectKey{Namespace: binding.CredentialsRef.Namespace, Name: binding.CredentialsRef.Name}, nil
	}
	if name := shoot.Spec.SecretBindingName; name != nil {
		var binding gardencorev1beta1.SecretBinding
		if err := i.garden.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, &binding); err != nil {
			return client.ObjectKey{}, fmt.Errorf("read secretbinding %s/%s: %w", shoot.Namespace, *name, err)
		}
		return client.ObjectKey{Namespace: binding.SecretRef.Namespace, Name: binding.SecretRef.Name}, nil
	}
	return client.ObjectKey{}, fmt.Errorf("shoot %s/%s has no binding", shoot.Namespace, shoot.Name)
}

// flow is one run for one Shoot.
type flow struct {
	id     string // technicalID
	region string
	config *networksConfig
	ec2    *ec2.Client
	iam    *iam.Client
	elb    *elb.Client
	log    *slog.Logger
}

func (i *Infrastructure) flow(ctx context.Context, shoot *gardencorev1beta1.Shoot, technicalID string) (*flow, error) {
	cfg, err := i.configOf(ctx, shoot, clientName)
	if err != nil {
		return nil, err
	}
	config, err := decodeConfig(shoot)
	if err != nil {
		return nil, err
	}
	return &flow{
		id: technicalID, region: shoot.Spec.Region, config: config, ec2: ec2.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg),
		elb: elb.NewFromConfig(cfg), log: i.log.With("shoot", technicalID),
	}, nil
}

// Reconcile implements gardenlet.Infrastructure, in the order of Gardener's
// flow.
func (i *Infrastructure) Reconcile(ctx context.Context, shoot *gardencorev1beta1.Shoot, technicalID string) error {
	f, err := i.flow(ctx, shoot, technicalID)
	if err != nil {
		return classify(err)
	}
	return classify(f.reconcile(ctx))
}

func (f *flow) reconcile(ctx context.Context) error {
	vpc, err := f.ensureVPC(ctx)
	if err != nil {
		return err
	}
	gateway, err := f.ensureInternetGateway(ctx, vpc)
	if err != nil {
		return err
	}
	main, err := f.ensureMainRouteTable(ctx, vpc, gateway)
	if err != nil {
		return err
	}
	for index, zone := range f.config.Networks.Zones {
		if err := f.ensureZone(ctx, vpc, main, index, zone); err != nil {
			return fmt.Errorf("zone %s: %w", zone.Name, err)
		}
	}
	if err := f.ensureNodesSecurityGroup(ctx, vpc); err != nil {
		return err
	}
	if err := f.ensureNodesRole(ctx); err != nil {
		return err
	}
	return f.ensureKeyPair(ctx)
}

// Delete implements gardenlet.Infrastructure.
func (i *Infrastructure) Delete(ctx context.Context, shoot *gardencorev1beta1.Shoot, technicalID string) error {
	f, err := i.flow(ctx, shoot, technicalID)
	if err != nil {
		return classify(err)
	}
	return classify(f.delete(ctx))
}
