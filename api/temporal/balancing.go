package temporal

// Balancing: a Schedule starts the workflow BalanceReplicas every 15 s and
// whenever a Balancer has changed. Pause the Schedule to stop all balancing.
const (
	// QueueBalancing serves BalanceReplicas and its activities.
	QueueBalancing = "infra-balancing"
	// WorkflowBalanceReplicas is the workflow type of one sweep over all
	// Balancers. Argument Sweep.
	WorkflowBalanceReplicas = "BalanceReplicas"
	// ScheduleBalanceReplicas is the id of the Schedule, and the beginning of
	// the ids of its workflows.
	ScheduleBalanceReplicas = "balance-replicas"
)

// Sweep is the argument of BalanceReplicas.
type Sweep struct {
	// Concurrency is how many Balancers are changed at a time.
	Concurrency int `json:"concurrency,omitempty"`
	// After is the last Balancer (namespace/name) that an earlier run of the
	// same sweep has looked at; the workflow fills it when it continues as new.
	After string `json:"after,omitempty"`
}
