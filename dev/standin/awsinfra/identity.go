package awsinfra

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"golang.org/x/crypto/ssh"
)

const (
	nodesTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	// nodesPolicy lets nodes describe instances and, with enableECRAccess, pull
	// images.
	nodesPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:DescribeInstances"],"Resource":["*"]},` +
		`{"Effect":"Allow","Action":["ecr:GetAuthorizationToken","ecr:BatchCheckLayerAvailability","ecr:GetDownloadUrlForLayer",` +
		`"ecr:BatchGetImage"],"Resource":["*"]}]}`
)

// ensureNodesRole makes role, instance profile and policy "<technicalID>-nodes".
// IAM has no tags here, as in the extension: names are unique enough.
func (f *flow) ensureNodesRole(ctx context.Context) error {
	name := aws.String(f.name("nodes"))
	_, err := f.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: name, Path: aws.String("/"), AssumeRolePolicyDocument: aws.String(nodesTrust)})
	if err != nil && !hasCode(err, "EntityAlreadyExists") {
		return fmt.Errorf("create role %s: %w", *name, err)
	}
	_, err = f.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name, Path: aws.String("/")})
	if err != nil && !hasCode(err, "EntityAlreadyExists") {
		return fmt.Errorf("create instance profile %s: %w", *name, err)
	}
	profile, err := f.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name})
	if err != nil {
		return fmt.Errorf("read instance profile %s: %w", *name, err)
	}
	if len(profile.InstanceProfile.Roles) == 0 {
		_, err = f.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: name})
		if err != nil {
			return fmt.Errorf("add role %s to its instance profile: %w", *name, err)
		}
	}
	_, err = f.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: name, PolicyName: name, PolicyDocument: aws.String(nodesPolicy)})
	if err != nil {
		return fmt.Errorf("put policy of role %s: %w", *name, err)
	}
	return nil
}

// deleteNodesRole goes policy, profile, role.
func (f *flow) deleteNodesRole(ctx context.Context) error {
	name := aws.String(f.name("nodes"))
	for _, step := range []func() error{
		func() error {
			_, err := f.iam.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: name, PolicyName: name})
			return err
		},
		func() error {
			_, err := f.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: name})
			return err
		},
		func() error {
			_, err := f.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
			return err
		},
		func() error {
			_, err := f.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})
			return err
		},
	} {
		if err := step(); err != nil && !hasCode(err, "NoSuchEntity") {
			return fmt.Errorf("delete role %s: %w", *name, err)
		}
	}
	return nil
}

// ensureKeyPair imports a public key; nobody logs in to nodes here, so the
// private half is thrown away.
func (f *flow) ensureKeyPair(ctx context.Context) error {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("generate an ssh key: %w", err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return fmt.Errorf("encode an ssh key: %w", err)
	}
	_, err = f.ec2.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{
		KeyName: aws.String(f.name("ssh-publickey")), PublicKeyMaterial: ssh.MarshalAuthorizedKey(key),
		TagSpecifications: f.tags(types.ResourceTypeKeyPair, "ssh-publickey"),
	})
	if err != nil && !hasCode(err, "InvalidKeyPair.Duplicate") {
		return fmt.Errorf("import key pair: %w", err)
	}
	return nil
}
