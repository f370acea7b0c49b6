package workers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/worker"
)

// Versioning is Temporal's Worker Deployment Versioning: an operation ends on
// the version of the workers on which it began, and object workflows move to
// the current one when they are idle. Off, every worker serves every workflow.
type Versioning struct {
	On bool
	// DeploymentName is common to all versions of the workers.
	DeploymentName string
	// BuildID names this version. Two builds whose workflows differ must not
	// share one.
	BuildID string
}

// AddTo registers the flags. version is that of this build.
func (v *Versioning) AddTo(fs *pflag.FlagSet, version string) {
	fs.BoolVar(&v.On, "versioning", false, "use Temporal's Worker Deployment Versioning: this worker serves nothing until its version is made current (deploy/temporal/release.sh)")
	fs.StringVar(&v.DeploymentName, "deployment-name", "infra-worker", "with --versioning: name of the worker deployment, the same for all versions")
	fs.StringVar(&v.BuildID, "build-id", version, "with --versioning: version of this worker; one that was not built as a release must be given one")
}

// maxVersionPart is safely below the server's limit for each of the two names.
const maxVersionPart = 255

// Validate refuses what the server would refuse, or what would mix two builds.
func (v *Versioning) Validate() error {
	if !v.On {
		return nil
	}
	var errs []error
	if !versionPart(v.DeploymentName) || strings.ContainsAny(v.DeploymentName, ".:") {
		errs = append(errs, fmt.Errorf("--deployment-name %q: 1 to %d characters, without . and :, not beginning with __", v.DeploymentName, maxVersionPart))
	}
	if !versionPart(v.BuildID) {
		errs = append(errs, fmt.Errorf("--build-id %q: 1 to %d characters, not beginning with __", v.BuildID, maxVersionPart))
	}
	if v.BuildID == "devel" {
		errs = append(errs, errors.New("--versioning needs --build-id: this build has no version of its own, and two builds must not share one"))
	}
	return errors.Join(errs...)
}

func versionPart(s string) bool {
	return s != "" && len(s) <= maxVersionPart && !strings.HasPrefix(s, "__")
}

func (v *Versioning) options() worker.DeploymentOptions {
	if !v.On {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning: true,
		Version:       worker.WorkerDeploymentVersion{DeploymentName: v.DeploymentName, BuildID: v.BuildID},
	}
}
