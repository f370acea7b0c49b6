package plan

import (
	"slices"
	"strings"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Provider validates a Provider against its ProviderType and Account, and
// resolves its references. CredentialsHash is left to the caller, who may read
// the Secret. The account may be nil while the Provider is being deleted.
func Provider(provider *v1.Provider, pt *v1.ProviderType, account *v1.Account, o Options) (contract.ProviderPlan, error) {
	ref, err := refOf(v1.KindProvider, provider)
	if err != nil {
		return contract.ProviderPlan{}, err
	}
	p := problems{list: slices.Concat(o.Problems, CheckProvider(provider, pt, o))}
	if creating(provider) {
		p.list = append(p.list, CheckNewProvider(provider, pt, account)...)
	}
	cloud := cloudAccount(ref, provider)
	if len(pt.Spec.Regions) > 0 {
		cloud.Region = string(pt.Spec.Regions[0].Name) // STS is asked here
	}
	return contract.ProviderPlan{
		Ref: ref, Account: cloud, Cloud: string(pt.Spec.Cloud), Project: project(provider, o),
	}, p.fault(v1.KindProvider, provider)
}

// CheckProvider holds the rules for every Provider.
func CheckProvider(provider *v1.Provider, pt *v1.ProviderType, o Options) []Problem {
	var p problems
	p.label(provider, v1.LabelProviderType, string(provider.Spec.Type), "as spec.type")
	p.merge(supportedCloud("spec.type", pt.Spec.Cloud))
	p.merge(checkCloudAccount(provider, pt))
	p.merge(checkProject(provider, o))
	return p.list
}

// CheckNewProvider holds the rules that do not touch a Provider that exists.
// The account may be nil: then its rules are not asked.
func CheckNewProvider(provider *v1.Provider, pt *v1.ProviderType, account *v1.Account) []Problem {
	var p problems
	if pt.DeletionTimestamp != nil {
		p.add("spec.type", provider.Spec.Type, "the ProviderType is being deleted; choose another one")
	}
	if account != nil && account.Spec.Suspended {
		p.add("spec.account", provider.Spec.Account, "the Account is suspended; nothing new is made for it")
	}
	return p.list
}

func checkCloudAccount(provider *v1.Provider, pt *v1.ProviderType) *problems {
	var p problems
	if pt.Spec.Cloud == v1.CloudAWS && provider.Spec.AWS == nil {
		p.add("spec.aws", "", "is required, as ProviderType %s is of cloud AWS; set spec.aws.accountID", pt.Name)
	}
	if pt.Spec.Cloud != v1.CloudGCP && provider.Spec.GCP != nil {
		p.add("spec.gcp", provider.Spec.GCP.ProjectID, "does not fit ProviderType %s of cloud %s; remove it", pt.Name, pt.Spec.Cloud)
	}
	if provider.Spec.Credentials.SecretRef == nil {
		p.add("spec.credentials.secretRef", "", "is required: other credentials are not supported yet")
	}
	return &p
}

// longestProject leaves room for a Shoot's name: both have 21 characters.
const longestProject = 10

func checkProject(provider *v1.Provider, o Options) *problems {
	var p problems
	switch name := project(provider, o); {
	case name == "":
		p.add("spec.project", "", "is required, as the controllers have no default project (gardener.projectName in their configuration)")
	case len(name) > longestProject:
		p.add("spec.project", name, "must have at most %d characters; create a project with a shorter name", longestProject)
	}
	return &p
}

func project(provider *v1.Provider, o Options) string {
	return or(provider.Spec.Project, o.DefaultProject)
}

// cloudAccount says where calls for the Provider go; the region is the
// caller's.
func cloudAccount(ref contract.ObjectRef, provider *v1.Provider) contract.CloudAccount {
	a := contract.CloudAccount{Namespace: ref.Namespace, Provider: ref.Name}
	if provider.Spec.AWS != nil {
		a.AccountID = provider.Spec.AWS.AccountID
	}
	return a
}

// projectOf returns the project of a namespace in the garden.
func projectOf(namespace string) string { return strings.TrimPrefix(namespace, projectPrefix) }
