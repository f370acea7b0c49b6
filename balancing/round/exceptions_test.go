package round

import "github.com/tidbcloud/infra-orchestrator/internal/oracle"

const (
	causeUnknownName   = "unknown-name-in-order"
	causeDuplicateName = "duplicate-target-name"
	causeSelector      = "unparseable-status-selector"
	causeWritesGoOn    = "first-failed-write-ends"
	causeTerminating   = "terminating-pods"
)

// exceptions lists every round whose outcome differs from the original's, by cause.
var exceptions = map[string]oracle.Exception{
	causeUnknownName: {
		Quirk: "the original crashes on a target order with an unknown name; ours refuses the specification",
		IDs:   []string{"pb-0420"},
	},
	causeDuplicateName: {
		Quirk: "the original scales only the last of two targets with one name; ours refuses the specification",
		IDs:   []string{"pb-0411"},
	},
	causeSelector: {
		Quirk: "the original publishes <none> or <error> as status.selector; ours can always be parsed",
		IDs:   []string{"pb-0404"},
	},
	causeWritesGoOn: {
		Quirk: "the original's first failed write ends the round; ours tries all",
		IDs:   []string{"pb-0065"},
	},
	causeTerminating: {
		Quirk: "the original counts a Pending pod as blocked although it is being deleted (pb-0417); ours does not",
		IDs: []string{
			"pb-0041", "pb-0042", "pb-0049", "pb-0075", "pb-0090", "pb-0094", "pb-0118", "pb-0126", "pb-0150",
			"pb-0166", "pb-0212", "pb-0222", "pb-0251", "pb-0255", "pb-0270", "pb-0289", "pb-0298", "pb-0299",
			"pb-0306", "pb-0322", "pb-0341", "pb-0345", "pb-0348", "pb-0384", "pb-0417",
		},
	},
}
