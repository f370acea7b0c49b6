package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
)

// verbTimeout bounds the wait for the object's workflow: it answers within a
// second when a worker runs.
const verbTimeout = 15 * time.Second

// verbHelp says for each verb what it does, in a line and at length.
var verbHelp = map[string][2]string{
	temporal.VerbRetry: {"Run a stalled step again, or an operation that was ended",
		"Run the step that has stalled again, without waiting for its slow timer. An\noperation that was cancelled, or terminated in the Temporal UI, starts again from\nwhat exists. A retry is always safe: every step looks for what it made before."},
	temporal.VerbSkip: {"Go on without the step that runs",
		"Go on without the step that runs or has stalled. Only steps that nothing after\nthem needs can be skipped; describe says which."},
	temporal.VerbPause: {"Let no step start until resume",
		"Let the activity that runs finish, and start no other until resume. It sets the\nannotation " + v1.AnnotationPaused + ". A paused object is not\ndeleted either: its deletion waits, and says so."},
	temporal.VerbResume: {"End a pause", "End a pause: remove the annotation " + v1.AnnotationPaused + "."},
	temporal.VerbCancel: {"Stop the operation, and undo what a creation has made",
		"Stop the operation after the activity that runs. What a creation has made is\nundone, newest first; asked a second time, the undoing ends too, and what is left\nstays in status.resources for a deletion. A deletion cannot be cancelled."},
	temporal.VerbReconcile: {"Run the steps again although nothing has changed",
		"Run all steps again although the spec has not changed: what is as it should be\nstays, what has drifted is put right."},
}

// verbResult is what -o json prints.
type verbResult struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Verb      string `json:"verb"`
	Accepted  bool   `json:"accepted"`
	// Text says what happens now, or why it was refused.
	Text string `json:"text"`
}

func newVerbs(g *globals) []*cobra.Command {
	all := make([]*cobra.Command, 0, len(temporal.Verbs()))
	for _, verb := range temporal.Verbs() {
		all = append(all, newVerb(g, verb))
	}
	return all
}

func newVerb(g *globals, verb string) *cobra.Command {
	var output, by, step string
	cmd := &cobra.Command{
		Use:               verb + " KIND NAME",
		Short:             verbHelp[verb][0],
		Long:              verbHelp[verb][1] + "\n\nThe object's workflow answers at once: what happens now, or why not. The same can\nbe had without infractl by the annotation " + v1.AnnotationOperation + "=" + verb + ".",
		Example:           fmt.Sprintf("  infractl %s network n1\n  infractl %s cluster/c1 -o json", verb, verb),
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: g.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q: want json, or nothing", output)
			}
			k, name, err := oneTarget(args)
			if err != nil {
				return err
			}
			if !k.HasWorkflow {
				return fmt.Errorf("kind %s has no operations, so there is nothing to %s", k.Name, verb)
			}
			r, err := g.open()
			if err != nil {
				return err
			}
			o, err := r.get(cmd.Context(), k, name)
			if err != nil {
				return err
			}
			res, err := ask(cmd.Context(), o, temporal.VerbRequest{Verb: verb, Step: step, By: by})
			if err != nil {
				return err
			}
			return printVerb(cmd.OutOrStdout(), res, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json")
	cmd.Flags().StringVar(&by, "by", whoami(), "who asks, for the Event and the audit")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	if verb == temporal.VerbRetry || verb == temporal.VerbSkip {
		cmd.Flags().StringVar(&step, "step", "", "only if the operation is in this step")
	}
	return cmd
}

// printVerb prints an answer. A refusal is an error, in json too.
func printVerb(w io.Writer, res verbResult, output string) error {
	var err error
	if output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(res)
	} else if res.Accepted {
		text, object := res.Text, fmt.Sprintf("%s %s/%s", res.Kind, res.Namespace, res.Name)
		if !strings.Contains(text, object) {
			text = object + ": " + text
		}
		_, err = fmt.Fprintln(w, text)
	}
	if err == nil && !res.Accepted {
		return errors.New("refused: " + res.Text)
	}
	return err
}

// ask sends the verb to the object's workflow, which is started if it does not
// run, and waits for its answer.
func ask(ctx context.Context, o object, req temporal.VerbRequest) (verbResult, error) {
	res := verbResult{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Verb: req.Verb}
	opts, err := runtime.TemporalOptions(slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return res, err
	}
	ctx, cancel := context.WithTimeout(ctx, verbTimeout)
	defer cancel()
	c, err := temporalclient.DialContext(ctx, opts)
	if err != nil {
		return res, fmt.Errorf("%s of Temporal: %w. Set TEMPORAL_ADDRESS; or set the annotation %s=%s, which is taken up once Temporal answers",
			opts.HostPort, err, v1.AnnotationOperation, req.Verb)
	}
	defer c.Close()
	began := time.Now()
	reply, err := send(ctx, c, o, req)
	var refused *sdktemporal.ApplicationError
	switch {
	case err == nil:
		res.Accepted, res.Text = true, reply.Text
	case errors.As(err, &refused):
		res.Text = refused.Message()
	case ctx.Err() != nil, unanswered(err):
		return res, silence(o, req, time.Since(began))
	default:
		return res, fmt.Errorf("%s of Temporal, namespace %s: %w", opts.HostPort, opts.Namespace, err)
	}
	return res, nil
}

// unanswered says whether an error is that the object's workflow did not answer:
// the deadline of the call, or the server's own, which comes as a cancellation.
func unanswered(err error) bool {
	var over *temporalclient.WorkflowUpdateServiceTimeoutOrCanceledError
	var deadline *serviceerror.DeadlineExceeded
	var cancelled *serviceerror.Canceled
	return errors.As(err, &over) || errors.As(err, &deadline) || errors.As(err, &cancelled) || errors.Is(err, context.DeadlineExceeded)
}

// silence says what a verb is worth that nobody has answered. Temporal holds it
// in memory until a worker has taken it, or until that server restarts.
func silence(o object, req temporal.VerbRequest, waited time.Duration) error {
	kind := strings.ToLower(o.Kind)
	return fmt.Errorf("no worker has answered for %s %s/%s within %s. Not lost yet: %s is still done if a worker takes it up later, but a restart of Temporal forgets it. "+
		"For the operator: see that a worker runs (/readyz), and in its log that it may read the objects; then look for VerbAccepted in \"infractl describe %s %s\" before asking again. "+
		"The annotation %s=%s on the object is not forgotten",
		o.Kind, o.Namespace, o.Name, max(waited.Round(time.Second), time.Second), req.Verb, kind, o.Name, v1.AnnotationOperation, req.Verb)
}

// updater is what send needs of a Temporal client.
type updater interface {
	NewWithStartWorkflowOperation(options temporalclient.StartWorkflowOptions, workflow any, args ...any) temporalclient.WithStartWorkflowOperation
	UpdateWithStartWorkflow(ctx context.Context, options temporalclient.UpdateWithStartWorkflowOptions) (temporalclient.WorkflowUpdateHandle, error)
}

// askAgainAfter is how long send waits with a verb that Temporal turned away.
const askAgainAfter = 200 * time.Millisecond

// send sends the verb and waits for its answer. Temporal turns away an update
// whose workflow task failed, as when an activity of the workflow has answered
// at the same moment; the workflow has not seen it then, so it is sent again.
func send(ctx context.Context, c updater, o object, req temporal.VerbRequest) (reply temporal.VerbReply, err error) {
	for {
		var handle temporalclient.WorkflowUpdateHandle
		handle, err = c.UpdateWithStartWorkflow(ctx, temporalclient.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: startObject(c, o),
			UpdateOptions: temporalclient.UpdateWorkflowOptions{
				WorkflowID: temporal.ObjectID(o.Kind, o.Namespace, o.Name), UpdateName: temporal.UpdateVerb,
				Args: []any{req}, WaitForStage: temporalclient.WorkflowUpdateStageCompleted,
			},
		})
		if err == nil {
			err = handle.Get(ctx, &reply)
		}
		var turnedAway *serviceerror.WorkflowNotReady
		if !errors.As(err, &turnedAway) {
			return reply, err
		}
		select {
		case <-ctx.Done():
			return reply, err
		case <-time.After(askAgainAfter):
		}
	}
}

// startObject starts the object's workflow as the bridge does.
func startObject(c updater, o object) temporalclient.WithStartWorkflowOperation {
	return c.NewWithStartWorkflowOperation(temporal.StartObject(o.Kind, o.Namespace, o.Name), o.Kind,
		temporal.Object{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, ID: o.Annotations[v1.AnnotationID]})
}

// whoami is user@host, as far as they are known.
func whoami() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
