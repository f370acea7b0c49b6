package workers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/worker"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Limits bound what goes on at once. The zero value is the default.
type Limits struct {
	// Slots of a task queue in this process: activities at a time. Default 200
	// for quick activities, 5000 for waits, each a goroutine and a heartbeat,
	// 20000 for waits of days.
	Slots map[string]int
	// QueueRates are activities a second that Temporal hands out on a task
	// queue, to all workers together; the worker that asked last sets it.
	// Default: no limit.
	QueueRates Rates
	// WorkerRates are activities a second that this process begins on a task
	// queue. Default: no limit.
	WorkerRates Rates
}

// AddTo adds the flags.
func (l *Limits) AddTo(fs *pflag.FlagSet) {
	fs.StringToIntVar(&l.Slots, "slots", nil, fmt.Sprintf("activities at a time in this process, `QUEUE=NUMBER`; default %s=%d,%s=%d,%s=%d",
		contract.QueueInfra, maxQuick, contract.QueueWaits, maxWaits, contract.QueueLongWaits, maxLongWaits))
	fs.Var(&l.QueueRates, "queue-rate", "activities a second that all workers together begin on a task queue, `QUEUE=RATE`; default no limit")
	fs.Var(&l.WorkerRates, "worker-rate", "activities a second that this process begins on a task queue, `QUEUE=RATE`; default no limit")
}

// Validate refuses queues that do not exist and queues without slots.
func (l Limits) Validate() error {
	queues := slices.Concat(slices.Collect(maps.Keys(l.Slots)), slices.Collect(maps.Keys(l.QueueRates)), slices.Collect(maps.Keys(l.WorkerRates)))
	for _, queue := range queues {
		if !slices.Contains(Queues(), queue) {
			return fmt.Errorf("task queue %q of --slots, --queue-rate or --worker-rate is not one of %v", queue, Queues())
		}
	}
	for queue, n := range l.Slots {
		if n < 1 {
			return fmt.Errorf("--slots %s=%d: a queue that is served needs at least one", queue, n)
		}
	}
	return nil
}

// apply sets the limits of one queue's worker.
func (l Limits) apply(queue string, o *worker.Options) {
	o.MaxConcurrentActivityExecutionSize = maxQuick
	switch queue {
	case contract.QueueWaits:
		o.MaxConcurrentActivityExecutionSize = maxWaits
	case contract.QueueLongWaits:
		o.MaxConcurrentActivityExecutionSize = maxLongWaits
	}
	if n, ok := l.Slots[queue]; ok {
		o.MaxConcurrentActivityExecutionSize = n
	}
	o.TaskQueueActivitiesPerSecond = l.QueueRates[queue]
	o.WorkerActivitiesPerSecond = l.WorkerRates[queue]
}

// Rates are numbers a second by task queue, as a flag.
type Rates map[string]float64

var _ pflag.Value = (*Rates)(nil)

// String implements pflag.Value.
func (r *Rates) String() string {
	var pairs []string
	for _, queue := range slices.Sorted(maps.Keys(*r)) {
		pairs = append(pairs, queue+"="+strconv.FormatFloat((*r)[queue], 'g', -1, 64))
	}
	return strings.Join(pairs, ",")
}

// Set implements pflag.Value; it may be called again for other queues.
func (r *Rates) Set(text string) error {
	if *r == nil {
		*r = Rates{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		queue, number, _ := strings.Cut(pair, "=")
		rate, err := strconv.ParseFloat(number, 64)
		if err != nil || !(rate > 0) {
			return fmt.Errorf("%q is not QUEUE=RATE with a rate above 0", pair)
		}
		(*r)[queue] = rate
	}
	return nil
}

// Type implements pflag.Value.
func (r *Rates) Type() string { return "QUEUE=RATE" }
