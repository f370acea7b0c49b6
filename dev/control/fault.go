package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Target is the part of the stack that a fault strikes.
type Target string

const (
	// TargetAWS is the proxy in front of the AWS emulator.
	TargetAWS Target = "aws"
	// TargetShoot is the stand-in of gardenlet.
	TargetShoot Target = "shoot"
	// TargetTiDB is the stand-in of the TiDB Operator.
	TargetTiDB Target = "tidb"
	// TargetLoadBalancer is the stand-in of the AWS Load Balancer Controller.
	TargetLoadBalancer Target = "loadbalancer"
	// TargetConfigService is the stand-in of the config-service.
	TargetConfigService Target = "config-service"
)

// Kind is what goes wrong.
type Kind string

const (
	// KindThrottle answers with the throttling error of the called service: every
	// call, or those above Rate.
	KindThrottle Kind = "throttle"
	// KindServerError answers with an internal error, HTTP 500 unless Status
	// says otherwise, and without any effect.
	KindServerError Kind = "server-error"
	// KindDelay holds the call for Delay, then lets it through.
	KindDelay Kind = "delay"
	// KindLostAnswer lets the emulator do the work, then resets the connection.
	KindLostAnswer Kind = "lost-answer"
	// KindLostRequest resets the connection before anything was done.
	KindLostRequest Kind = "lost-request"
	// KindDeny answers with the access-denied error of the called service.
	KindDeny Kind = "deny"
	// KindEventual makes the cloud eventually consistent: the first calls about
	// something fresh answer that it does not exist (see Looks, Delay, Every), and
	// lists show one thing more that is gone at the next look.
	KindEventual Kind = "eventual"
	// KindStuck keeps the matching object where it is, unfinished, for as long
	// as the fault is on.
	KindStuck Kind = "stuck"
	// KindError fails the matching operation with Codes and Message.
	KindError Kind = "error"
)

// kinds says what each target understands.
var kinds = map[Target][]Kind{
	TargetAWS:           {KindThrottle, KindServerError, KindDelay, KindLostAnswer, KindLostRequest, KindDeny, KindEventual},
	TargetShoot:         {KindStuck, KindError, KindDelay},
	TargetTiDB:          {KindStuck},
	TargetLoadBalancer:  {KindStuck},
	TargetConfigService: {KindServerError, KindDelay, KindLostAnswer},
}

// phases are the operations that a fault of TargetShoot can name.
var phases = []string{"Create", "Reconcile", "Hibernate", "Wake", "Delete"}

// Fault is one rule. Every selector that is set must match; an empty one
// matches everything.
type Fault struct {
	// ID is set by the registry.
	ID string `json:"id,omitempty"`
	// Target and Kind are required.
	Target Target `json:"target"`
	Kind   Kind   `json:"kind"`

	// Service is an AWS service: ec2, elasticloadbalancing, iam, kms, route53,
	// s3, sts. TargetAWS only.
	Service string `json:"service,omitempty"`
	// Operation is an API operation such as CreateVpc, or a prefix of some
	// with a trailing "*". TargetAWS only.
	Operation string `json:"operation,omitempty"`
	// Account is the AWS account id of the caller. TargetAWS only.
	Account string `json:"account,omitempty"`
	// Resource is a part of the request: a name, an id, an ARN. TargetAWS and
	// TargetConfigService (there: of the path and query).
	Resource string `json:"resource,omitempty"`
	// StandIns lets the fault strike the calls of Gardener's infrastructure and
	// of the load-balancer controller, too; otherwise only the product and
	// people with a CLI meet it. TargetAWS only.
	StandIns bool `json:"standIns,omitempty"`

	// Shoot is the technicalID or the name of a Shoot; for TargetTiDB and
	// TargetLoadBalancer, which act in shoots.
	Shoot string `json:"shoot,omitempty"`
	// Namespace and Name are those of the object: the Shoot, the TidbCluster,
	// the Service.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Component is pd, tikv, tidb, tiflash or initializer. TargetTiDB only.
	Component string `json:"component,omitempty"`
	// Phase is Create, Reconcile, Hibernate, Wake or Delete. TargetShoot only.
	Phase string `json:"phase,omitempty"`

	// Count is how often the fault strikes before it is removed; 0 is always.
	// Not for stuck states and not for TargetShoot, which are asked again and
	// again about one operation.
	Count int `json:"count,omitempty"`
	// For is how long the fault stays on, in real time; 0 is until removed.
	For Duration `json:"for,omitempty"`
	// Rate is how many calls a second KindThrottle lets through, over all that it
	// matches, as a cloud does with an account's allowance; 0 is none.
	Rate float64 `json:"rate,omitempty"`
	// Delay is the extra time of KindDelay, default 1s; of KindEventual it is how
	// long something stays fresh after its creation, default 10s. In real time.
	Delay Duration `json:"delay,omitempty"`
	// Looks is how many calls of each operation about something fresh find nothing;
	// default 1. KindEventual only.
	Looks int `json:"looks,omitempty"`
	// Every and Skip choose among the operations that are called about something
	// fresh, in the order of their first calls: every so many-th one finds nothing,
	// after so many that do; 0 is all. KindEventual only.
	Every int `json:"every,omitempty"`
	Skip  int `json:"skip,omitempty"`
	// Status is the HTTP status of KindServerError; default 500.
	Status int `json:"status,omitempty"`
	// Progress is where a Shoot's operation is struck, 0 to 99 per cent.
	Progress int `json:"progress,omitempty"`
	// Codes are Gardener's error codes of KindError.
	Codes []string `json:"codes,omitempty"`
	// Message replaces the text of the error.
	Message string `json:"message,omitempty"`

	// Hits counts how often the fault has struck. Set by the registry.
	Hits int `json:"hits"`
	// Expires is when For ends. Set by the registry.
	Expires *time.Time `json:"expires,omitempty"`

	allowance *rate.Limiter // with Rate
}

// Subject is what a stand-in is about to do; a fault is matched against it.
// Fields that do not apply stay empty.
type Subject struct {
	Service, Operation, Account, Resource string
	// Shoot is the technicalID, ShootName the name of the Shoot.
	Shoot, ShootName string
	Namespace, Name  string
	Component, Phase string
	// StandIn says that a stand-in of the stack calls AWS.
	StandIn bool
}

// Validate says what is wrong with the rule, in words for its author.
func (f *Fault) Validate() error {
	known, ok := kinds[f.Target]
	if !ok {
		return fmt.Errorf("target %q is unknown: use aws, shoot, tidb, loadbalancer or config-service", f.Target)
	}
	var errs []error
	if !slices.Contains(known, f.Kind) {
		errs = append(errs, fmt.Errorf("kind %q does not exist for target %s: use one of %v", f.Kind, f.Target, known))
	}
	if f.Target != TargetAWS && (f.Service != "" || f.Operation != "" || f.Account != "" || f.StandIns) {
		errs = append(errs, errors.New("service, operation, account and standIns belong to target aws"))
	}
	if f.Component != "" && f.Target != TargetTiDB {
		errs = append(errs, errors.New("component belongs to target tidb"))
	}
	if f.Phase != "" && (f.Target != TargetShoot || !slices.Contains(phases, f.Phase)) {
		errs = append(errs, fmt.Errorf("phase belongs to target shoot and is one of %v", phases))
	}
	if f.Count != 0 && (f.Target == TargetShoot || f.Kind == KindStuck) {
		errs = append(errs, errors.New("count does not work for shoots and stuck states: use for, or remove the fault"))
	}
	if f.Rate < 0 || (f.Rate > 0 && f.Kind != KindThrottle) {
		errs = append(errs, errors.New("rate belongs to kind throttle and is not negative"))
	}
	if f.Kind != KindEventual && (f.Looks != 0 || f.Every != 0 || f.Skip != 0) {
		errs = append(errs, errors.New("looks, every and skip belong to kind eventual"))
	}
	if f.Looks < 0 || f.Every < 0 || f.Skip < 0 || (f.Every > 0 && f.Skip >= f.Every) {
		errs = append(errs, errors.New("looks, every and skip are not negative, and skip is less than every"))
	}
	if f.Count < 0 || f.For < 0 || f.Delay < 0 || f.Progress < 0 || f.Progress > 99 {
		errs = append(errs, errors.New("count, for and delay must not be negative, progress is 0 to 99"))
	}
	if f.Status != 0 && (f.Status < 500 || f.Status > 599) {
		errs = append(errs, errors.New("status is 500 to 599"))
	}
	return errors.Join(errs...)
}

// complete fills defaults.
func (f *Fault) complete() {
	switch {
	case f.Kind == KindDelay && f.Delay == 0:
		f.Delay = Duration(time.Second)
	case f.Kind == KindEventual:
		if f.Delay == 0 {
			f.Delay = Duration(10 * time.Second)
		}
		f.Looks = max(f.Looks, 1)
	}
}

// matches reports whether every selector that is set fits s.
func (f *Fault) matches(s Subject) bool {
	return (f.StandIns || !s.StandIn) && fits(f.Service, s.Service) && fitsPrefix(f.Operation, s.Operation) &&
		fits(f.Account, s.Account) && strings.Contains(s.Resource, f.Resource) &&
		(f.Shoot == "" || f.Shoot == s.Shoot || f.Shoot == s.ShootName) &&
		fits(f.Namespace, s.Namespace) && fits(f.Name, s.Name) &&
		fits(f.Component, s.Component) && fits(f.Phase, s.Phase)
}

// spares reports whether the call is within the fault's rate.
func (f *Fault) spares(now time.Time) bool {
	return f.allowance != nil && f.allowance.AllowN(now, 1)
}

func fits(want, have string) bool { return want == "" || want == have }

func fitsPrefix(want, have string) bool {
	if prefix, ok := strings.CutSuffix(want, "*"); ok {
		return strings.HasPrefix(have, prefix)
	}
	return fits(want, have)
}

// Duration is a time.Duration that reads and writes itself as "1m30s" in JSON.
type Duration time.Duration

// MarshalJSON writes the form of time.Duration.String.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads what time.ParseDuration accepts.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a duration is a string such as \"90s\": %w", err)
	}
	parsed, err := time.ParseDuration(text)
	*d = Duration(parsed)
	return err
}
