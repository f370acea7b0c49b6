package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// sink is a place to write to that can break.
type sink struct {
	bytes.Buffer
	// fail, when set, is asked before each write: how much of it works, and the
	// error.
	fail func(p []byte) (int, error)
}

func (s *sink) Write(p []byte) (int, error) {
	if s.fail != nil {
		if n, err := s.fail(p); err != nil {
			_, _ = s.Buffer.Write(p[:n])
			return n, err
		}
	}
	return s.Buffer.Write(p)
}

func (s *sink) records(t *testing.T) (all []Record) {
	t.Helper()
	for line := range strings.Lines(s.String()) {
		var r Record
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		all = append(all, r)
	}
	return all
}

// bench is an activity environment with the audit.
type bench struct {
	*testsuite.TestActivityEnvironment
	out     *sink
	auditor *auditor
}

func newBench(t *testing.T) *bench {
	t.Helper()
	out := &sink{}
	l, err := newLog(out, "test", "1@host", nil)
	require.NoError(t, err)
	i, err := NewInterceptor(l, prometheus.NewRegistry())
	require.NoError(t, err)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	b := &bench{TestActivityEnvironment: suite.NewTestActivityEnvironment(), out: out, auditor: i.(*auditor)}
	b.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{i}})
	return b
}

// register registers an implementation of an activity of the contract.
func register[In, Out any](b *bench, a contract.Activity[In, Out], f func(context.Context, In) (Out, error)) {
	b.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: a.Name})
}

func TestIntentThenOutcome(t *testing.T) {
	b := newBench(t)
	register(b, contract.AWS.EnsureBucket, func(context.Context, contract.CloudResourceInput) (contract.Outcome, error) {
		all := b.out.records(t)
		require.Equal(t, StageIntent, all[len(all)-1].Stage, "the intent is written before the call")
		return contract.Outcome{Resource: v1.Resource{Provider: "aws", Type: "S3::Bucket", ID: "ic-1", State: v1.ResourcePresent}}, nil
	})
	_, err := b.ExecuteActivity(contract.AWS.EnsureBucket.Name, contract.CloudResourceInput{})
	require.NoError(t, err)
	all := b.out.records(t)
	require.Len(t, all, 3)
	require.Equal(t, StageStart, all[0].Stage)
	intent, outcome := all[1], all[2]
	require.Equal(t, StageIntent, intent.Stage)
	require.Empty(t, intent.Outcome)
	require.Nil(t, intent.After)
	require.Equal(t, StageOutcome, outcome.Stage)
	require.Equal(t, OutcomeOK, outcome.Outcome)
	require.Equal(t, "ic-1", outcome.After.ID)
	require.NotNil(t, outcome.DurationMS)
	require.NotEmpty(t, outcome.Call)
	require.Equal(t, intent.Call, outcome.Call)
	require.EqualValues(t, 1, outcome.Attempt)
	require.Equal(t, "aws.EnsureBucket", outcome.Activity)
	require.Equal(t, "1@host", outcome.Worker)
	require.WithinDuration(t, time.Now(), outcome.Time, time.Minute)
	require.Equal(t, time.UTC, outcome.Time.Location())
}

func TestReadingIsNotAudited(t *testing.T) {
	b := newBench(t)
	register(b, contract.AWS.DiscoverVPC, func(context.Context, contract.DiscoverVPCInput) (contract.VPC, error) { return contract.VPC{}, nil })
	register(b, contract.ApplyObjectStatus, func(context.Context, contract.ObjectStatus) (contract.None, error) { return contract.None{}, nil })
	_, err := b.ExecuteActivity(contract.AWS.DiscoverVPC.Name, contract.DiscoverVPCInput{})
	require.NoError(t, err)
	_, err = b.ExecuteActivity(contract.ApplyObjectStatus.Name, contract.ObjectStatus{})
	require.NoError(t, err)
	require.Len(t, b.out.records(t), 1, "the start alone")
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name          string
		err           error
		outcome, code string
	}{
		{"fault", faults.New(faults.Quota, "VpcLimitExceeded", "vpc", "no more"), "Quota", "VpcLimitExceeded"},
		{"unclassified", errors.New("boom"), "Transient", "Unclassified"},
		{"cancelled", context.Canceled, OutcomeCancelled, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			register(b, contract.AWS.DeleteIdentity, func(context.Context, contract.CloudResourceInput) (contract.None, error) { return contract.None{}, c.err })
			_, err := b.ExecuteActivity(contract.AWS.DeleteIdentity.Name, contract.CloudResourceInput{})
			require.Error(t, err)
			all := b.out.records(t)
			last := all[len(all)-1]
			require.Equal(t, c.outcome, last.Outcome)
			require.Equal(t, c.code, last.Code)
			require.NotContains(t, b.out.String(), `"after"`, "what a failed call has done is not known")
		})
	}
}

func TestDeletionLeavesNull(t *testing.T) {
	b := newBench(t)
	register(b, contract.AWS.DeleteIdentity, func(context.Context, contract.CloudResourceInput) (contract.None, error) { return contract.None{}, nil })
	_, err := b.ExecuteActivity(contract.AWS.DeleteIdentity.Name, contract.CloudResourceInput{})
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(b.out.String(), `"after":null`))
}

func TestPanicIsAnOutcome(t *testing.T) {
	b := newBench(t)
	register(b, contract.AWS.DeleteIdentity, func(context.Context, contract.CloudResourceInput) (contract.None, error) { panic("oh") })
	_, err := b.ExecuteActivity(contract.AWS.DeleteIdentity.Name, contract.CloudResourceInput{})
	require.ErrorContains(t, err, "oh")
	all := b.out.records(t)
	require.Equal(t, OutcomePanic, all[len(all)-1].Outcome)
}

// No word of inputs, outputs and messages reaches the log.
func TestNoSecret(t *testing.T) {
	const marker = "MARKERf00dfeed"
	b := newBench(t)
	calls := 0
	register(b, contract.AWS.EnsureBucket, func(_ context.Context, in contract.CloudResourceInput) (contract.Outcome, error) {
		require.Contains(t, in.Name, marker)
		if calls++; calls == 1 {
			return contract.Outcome{}, faults.New(faults.Auth, "InvalidAccessKeyId", marker, "the key %s is not known", marker).WithHint(faults.OwnerUser, marker)
		}
		return contract.Outcome{Note: marker, Resource: v1.Resource{Type: "S3::Bucket", ID: "ic-1"}}, nil
	})
	in := contract.CloudResourceInput{Name: marker, Account: contract.CloudAccount{Provider: marker}, Env: marker}
	_, err := b.ExecuteActivity(contract.AWS.EnsureBucket.Name, in)
	require.Error(t, err)
	_, err = b.ExecuteActivity(contract.AWS.EnsureBucket.Name, in)
	require.NoError(t, err)
	require.Len(t, b.out.records(t), 5)
	require.NotContains(t, b.out.String(), marker)
}

func TestNothingHappensUnrecorded(t *testing.T) {
	b := newBench(t)
	called := 0
	register(b, contract.AWS.EnsureBucket, func(context.Context, contract.CloudResourceInput) (contract.Outcome, error) {
		called++
		return contract.Outcome{}, nil
	})
	b.out.fail = func([]byte) (int, error) { return 0, syscall.ENOSPC }
	_, err := b.ExecuteActivity(contract.AWS.EnsureBucket.Name, contract.CloudResourceInput{})
	require.ErrorContains(t, err, "nothing was done")
	require.ErrorContains(t, err, "no space left")
	require.Zero(t, called)
	var m dto.Metric
	require.NoError(t, b.auditor.failures.Write(&m))
	require.EqualValues(t, 1, m.GetCounter().GetValue())

	b.out.fail = nil
	_, err = b.ExecuteActivity(contract.AWS.EnsureBucket.Name, contract.CloudResourceInput{})
	require.NoError(t, err)
	require.Equal(t, 1, called)
}

// A call whose outcome cannot be written counts as failed, so that it is
// repeated; the fault is one that is retried.
func TestOutcomeMustBeRecorded(t *testing.T) {
	b := newBench(t)
	register(b, contract.AWS.EnsureBucket, func(context.Context, contract.CloudResourceInput) (contract.Outcome, error) {
		b.out.fail = func([]byte) (int, error) { return 0, syscall.ENOSPC }
		return contract.Outcome{}, nil
	})
	_, err := b.ExecuteActivity(contract.AWS.EnsureBucket.Name, contract.CloudResourceInput{})
	require.ErrorContains(t, err, "the call is repeated")
	b.out.fail = nil
	all := b.out.records(t)
	require.Equal(t, StageIntent, all[len(all)-1].Stage, "the intent stays")
	werr := b.auditor.write(Record{}, StageIntent)
	require.NoError(t, werr)
	b.out.fail = func([]byte) (int, error) { return 0, syscall.EIO }
	f := faults.As(b.auditor.write(Record{}, StageIntent))
	require.NotNil(t, f)
	require.True(t, f.Class.Retryable())
	require.Equal(t, faults.OwnerOperator, f.Owner)
}

// The error of the call itself goes before that of the log.
func TestOwnErrorIsKept(t *testing.T) {
	b := newBench(t)
	register(b, contract.AWS.EnsureBucket, func(context.Context, contract.CloudResourceInput) (contract.Outcome, error) {
		b.out.fail = func([]byte) (int, error) { return 0, syscall.ENOSPC }
		return contract.Outcome{}, faults.New(faults.Conflict, "BucketAlreadyExists", "b", "taken")
	})
	_, err := b.ExecuteActivity(contract.AWS.EnsureBucket.Name, contract.CloudResourceInput{})
	require.ErrorContains(t, err, "taken")
}

func TestTornLineSpoilsNoOther(t *testing.T) {
	out := &sink{}
	l, err := newLog(out, "test", "1@host", nil)
	require.NoError(t, err)
	out.fail = func(p []byte) (int, error) { return len(p) / 2, syscall.ENOSPC }
	require.Error(t, l.write(Record{Stage: StageIntent}))
	out.fail = func([]byte) (int, error) { return 0, syscall.ENOSPC }
	require.Error(t, l.write(Record{Stage: StageIntent}))
	out.fail = nil
	require.NoError(t, l.write(Record{Stage: StageOutcome}))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 3, out.String())
	require.False(t, json.Valid([]byte(lines[1])))
	var last Record
	require.NoError(t, json.Unmarshal([]byte(lines[2]), &last))
	require.Equal(t, StageOutcome, last.Stage)
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	o := Options{Path: filepath.Join(dir, "sub", "audit.json"), MaxSizeMB: 1, MaxBackups: 2}
	l, err := Open(o, "7@host")
	require.NoError(t, err)
	raw, err := os.ReadFile(o.Path)
	require.NoError(t, err, "written at once: the proof that it works")
	var r Record
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Equal(t, StageStart, r.Stage)
	info, err := os.Stat(o.Path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	// 5 MB in a file of 1 MB leave two old files and the current one.
	long := strings.Repeat("x", 1000)
	for range 5 * 1024 {
		require.NoError(t, l.write(Record{Stage: StageIntent, Step: long}))
	}
	require.NoError(t, l.Close())
	require.Eventually(t, func() bool { // the library removes old ones beside
		files, err := os.ReadDir(filepath.Dir(o.Path))
		return err == nil && len(files) == 3
	}, 10*time.Second, 20*time.Millisecond)

	l, err = Open(Options{}, "7@host")
	require.NoError(t, err)
	require.Nil(t, l)
	require.NoError(t, l.Close())
	i, err := NewInterceptor(l, prometheus.NewRegistry())
	require.NoError(t, err)
	require.Nil(t, i)
}

func TestOpenRefusesWhereItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	folder := t.TempDir()
	for _, path := range []string{filepath.Join(file, "audit.json"), "/proc/none/audit.json", folder, "/dev/null"} {
		_, err := Open(Options{Path: path, MaxSizeMB: 1}, "7@host")
		require.ErrorContains(t, err, "--audit-log", path)
	}
	require.DirExists(t, folder, "and moves nothing away")
	_, err := newLog(&sink{fail: func([]byte) (int, error) { return 0, syscall.ENOSPC }}, "test", "7@host", nil)
	require.ErrorContains(t, err, "nothing is done without it")
}

func TestValidate(t *testing.T) {
	require.NoError(t, (&Options{Path: Stdout, MaxSizeMB: 1}).Validate())
	require.ErrorContains(t, (&Options{MaxSizeMB: 0}).Validate(), "--audit-log-max-size")
	require.ErrorContains(t, (&Options{MaxSizeMB: 1, MaxBackups: -1}).Validate(), "--audit-log-max-backups")
}
