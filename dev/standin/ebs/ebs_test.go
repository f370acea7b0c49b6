package ebs

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tidbcloud/infra-orchestrator/dev/awsproxy"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
	"github.com/tidbcloud/infra-orchestrator/dev/kube"
)

// A disk carries the driver's tags and those of its class, is made once, and is
// in the inventory until it is deleted.
func TestDiskIsInTheInventory(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	stack, err := awsproxy.Start(context.Background(), awsproxy.StackOptions{
		Options:  awsproxy.Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		CacheDir: filepath.Join(cache, "infra-orchestrator"), LogDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stack.Stop)
	disks := Volumes(func(_ context.Context, _, _, name string) (aws.Config, error) {
		return awsproxy.ClientConfig(stack.URL, "us-west-2", "AKIASHOOT", "x", name), nil
	})(gardenlet.ShootInfo{TechnicalID: "shoot--a--b", Zones: []string{"us-west-2a"}})
	req := kube.VolumeRequest{Name: "pvc-1", Claim: "tidb/tikv-0", Driver: driverName, Bytes: 5<<30 + 1, Zone: "us-west-2b",
		Parameters: map[string]string{"type": "gp3", "iops": "4000", "throughput": "250", "encrypted": "true",
			"kmsKeyId": "arn:aws:kms:us-west-2:123456789012:key/38884e6a-7952-47ee-9317-2ce932fa1665", "tagSpecification_1": "infra.cloud.pingcap.com/id=0123456789abcdef"}}
	var handle string
	for range 2 {
		if handle, err = disks.Create(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	list := func() []control.Resource {
		all, err := stack.Inventory(t.Context(), control.InventoryQuery{Owner: "0123456789abcdef"})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := list()
	if len(all) != 1 || all[0].ID != handle || all[0].Type != "ec2/volume" || all[0].Cluster != "shoot--a--b" || all[0].Name != "pvc-1" {
		t.Fatalf("the inventory has %+v", all)
	}
	for range 2 {
		if err := disks.Delete(t.Context(), driverName, handle); err != nil {
			t.Fatal(err)
		}
	}
	if all := list(); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
	if again, err := disks.Create(t.Context(), req); err != nil || again == handle {
		t.Errorf("made again: %s, %v", again, err)
	}
}
