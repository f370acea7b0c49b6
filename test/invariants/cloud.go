package invariants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// lookAround looks into the cloud now and then. On a machine that is busy it
// looks less often: it must not be what makes it busy.
func (c *Checker) lookAround(ctx context.Context) {
	pause := c.opts.Every
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		begin := time.Now()
		_ = c.Look(ctx)
		pause = max(c.opts.Every, 4*time.Since(begin))
	}
}

// listing is one listing of the emulator, for all who wait for it.
type listing struct {
	done chan struct{}
	all  []stack.Resource
	err  error
}

// Inventory lists the AWS emulator, at a moment after the call. Listing is dear,
// so those who ask while one listing is under way share the next.
func (c *Checker) Inventory(ctx context.Context) ([]stack.Resource, error) {
	c.mu.Lock()
	l := c.next
	if l == nil {
		l = &listing{done: make(chan struct{})}
		c.next = l
		go c.list(l)
	}
	c.mu.Unlock()
	select {
	case <-l.done:
		return l.all, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listingAttempts bounds how often a listing is begun anew.
const listingAttempts = 10

// list makes a listing as soon as the one before has ended.
func (c *Checker) list(l *listing) {
	c.listing.Lock()
	defer c.listing.Unlock()
	c.mu.Lock()
	c.next = nil // whoever asks from now on gets the next one
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	// What goes while it is listed makes a listing fail; the next one will do.
	for range listingAttempts {
		if l.all, l.err = c.opts.Stack.Inventory(ctx); l.err == nil || ctx.Err() != nil {
			break
		}
	}
	close(l.done)
}

// owners are the objects and Shoots that exist at one moment.
type owners struct {
	objects map[string]v1.Object // by identity
	shoots  map[string]bool      // by name in the cloud
	// deleting are the Shoots that were told to go, by namespace/name.
	deleting map[string]bool
	// pools are all worker pools of all Shoots. Shoots are listed after objects.
	pools []Pool
}

// Look checks the AWS emulator against the objects once. What exists must have
// an owner either just before or just after the look, so that no moment in
// between is missed and none is misjudged. It fails when a system is away.
func (c *Checker) Look(ctx context.Context) error {
	c.looking.RLock()
	defer c.looking.RUnlock()
	before, err := c.owners(ctx)
	if err != nil {
		return err
	}
	all, err := c.Inventory(ctx)
	if err != nil {
		return err
	}
	after, err := c.owners(ctx)
	if err != nil {
		return err
	}
	c.nothingTwice(all)
	for _, r := range all {
		c.owned(r, before, after)
	}
	c.readyIsTrue(before, after, all)
	for _, bad := range slices.Concat(usedShoots(before, after), poolsAreTrue(before, after)) {
		c.violate("%s", bad)
	}
	for _, bad := range PoolsTwice(before.pools) {
		c.violate("1: %s", bad)
	}
	c.mu.Lock()
	c.looks++
	c.mu.Unlock()
	return nil
}

func (c *Checker) owners(ctx context.Context) (owners, error) {
	o := owners{objects: map[string]v1.Object{}, shoots: map[string]bool{}, deleting: map[string]bool{}}
	for _, list := range lists() {
		if err := c.opts.Stack.Kube.List(ctx, list); err != nil {
			return o, err
		}
		for _, object := range objectsOf(list) {
			if id := object.GetAnnotations()[v1.AnnotationID]; id != "" {
				o.objects[id] = object
			}
		}
	}
	shoots := &unstructured.UnstructuredList{}
	shoots.SetAPIVersion("core.gardener.cloud/v1beta1")
	shoots.SetKind("ShootList")
	if err := c.opts.Stack.Kube.List(ctx, shoots); err != nil {
		return o, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shoots == nil {
		c.shoots = map[string]bool{}
	}
	for id := range o.objects {
		c.knows(id)
	}
	for _, s := range shoots.Items {
		name := fmt.Sprintf("shoot--%s--%s", strings.TrimPrefix(s.GetNamespace(), "garden-"), s.GetName())
		o.shoots[name], c.shoots[name] = true, true
		o.deleting[s.GetNamespace()+"/"+s.GetName()] = s.GetDeletionTimestamp() != nil
		o.pools = append(o.pools, PoolsOf(&s)...)
	}
	return o, nil
}

// IsPending says that a resource is on its way out, as AWS keeps it for a
// while.
func IsPending(r stack.Resource) bool { return r.Type == "kms/key" && r.State == "PendingDeletion" }

// Once is what an owner has one of at most: its type, and of disks one for each
// claim.
func Once(r stack.Resource) string {
	if r.Type == "ec2/volume" {
		return r.Type + " " + r.Tags["CSIVolumeName"]
	}
	return r.Type
}

// nothingTwice: each owner has at most one of a type, and each Shoot one VPC.
func (c *Checker) nothingTwice(all []stack.Resource) {
	have := map[string][]string{}
	for _, r := range all {
		switch {
		case IsPending(r):
		case r.Owner != "":
			have[r.Owner+" "+Once(r)] = append(have[r.Owner+" "+Once(r)], r.ID)
		case r.Cluster != "" && r.Type == "ec2/vpc":
			have[r.Cluster+" "+r.Type] = append(have[r.Cluster+" "+r.Type], r.ID)
		}
	}
	for what, ids := range have {
		if len(ids) > 1 {
			slices.Sort(ids)
			c.violate("1: %s exists %d times: %s", what, len(ids), strings.Join(ids, ", "))
		}
	}
}

// owned: what carries an identity has an object with that identity, which is
// held by our finalizer or has it in its ledger.
func (c *Checker) owned(r stack.Resource, before, after owners) {
	switch {
	case IsPending(r):
	case r.Owner == "" && r.Cluster != "":
		c.mu.Lock()
		ours := c.shoots[r.Cluster] // a VPC without any Shoot ever is a test's own
		c.mu.Unlock()
		if ours && !before.shoots[r.Cluster] && !after.shoots[r.Cluster] {
			c.violate("3: %s %s is left, and its Shoot %s is gone", r.Type, r.ID, r.Cluster)
		}
	case r.Owner != "":
		o := before.objects[r.Owner]
		if o == nil {
			o = after.objects[r.Owner]
		}
		c.mu.Lock()
		kept, ours := c.retained[r.Owner][r.ID], c.identities[r.Owner]
		if r.Type == "ec2/volume" { // is in no ledger: it is kept with the database
			kept = len(c.retained[r.Owner]) > 0
		}
		c.mu.Unlock()
		switch {
		case o == nil && !kept && ours:
			c.violate("3: %s %s is left, and its owner %s is gone", r.Type, r.ID, r.Owner)
		case o != nil && !held(o) && !inLedger(o, r):
			c.violate("2: %s %s: its owner %s has neither our finalizer nor the resource in its ledger", r.Type, r.ID, KeyOf(o))
		}
	}
}

// knows notes an identity; the lock is held.
func (c *Checker) knows(id string) {
	if c.identities == nil {
		c.identities = map[string]bool{}
	}
	c.identities[id] = true
}

func held(o v1.Object) bool { return slices.Contains(o.GetFinalizers(), v1.Finalizer(KeyOf(o).Kind)) }

func inLedger(o v1.Object, r stack.Resource) bool {
	return slices.ContainsFunc(o.Common().Resources, func(l v1.Resource) bool { return sameID(l.ID, r.ID) })
}

// sameID compares an id with an ARN or a name that ends with it.
func sameID(a, b string) bool {
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a) || strings.HasSuffix(a, ":"+b) || strings.HasSuffix(b, ":"+a)
}

// inCloud are the types of ledger entries that the inventory lists.
var inCloud = []string{"S3::Bucket", "KMS::Key", "IAM::Role", "IAM::OIDCProvider", "Route53::HostedZone", "EC2::VPCEndpointService"}

// readyIsTrue: an object that is Ready, and was so all through the look, has
// everything that its ledger lists.
func (c *Checker) readyIsTrue(before, after owners, all []stack.Resource) {
	for id, o := range before.objects {
		now := after.objects[id]
		if now == nil || now.GetGeneration() != o.GetGeneration() || !IsReady(o) || !IsReady(now) || now.GetDeletionTimestamp() != nil {
			continue
		}
		for _, l := range now.Common().Resources {
			if !slices.Contains(inCloud, l.Type) || l.State != v1.ResourcePresent {
				continue
			}
			if !slices.ContainsFunc(all, func(r stack.Resource) bool { return sameID(l.ID, r.ID) && !IsPending(r) }) {
				c.violate("5: %s is Ready, but its %s %s does not exist", KeyOf(now), l.Type, l.ID)
			}
		}
	}
}

// usedShoots: no Shoot is told to go while a Cluster that runs on it is there,
// since what that Cluster has attached to the VPC would stay with it.
func usedShoots(before, after owners) (bad []string) {
	shootOf := map[Key]string{}
	for _, o := range before.objects {
		if n, ok := o.(*v1.Network); ok && n.Status.Shoot != nil {
			shootOf[KeyOf(n)] = n.Status.Shoot.Namespace + "/" + n.Status.Shoot.Name
		}
	}
	for id, o := range before.objects {
		cluster, ok := o.(*v1.Cluster)
		if !ok || after.objects[id] == nil {
			continue
		}
		shoot := shootOf[Key{Kind: v1.KindNetwork, Namespace: cluster.Namespace, Name: string(cluster.Spec.Network)}]
		if before.deleting[shoot] && held(o) && held(after.objects[id]) {
			bad = append(bad, fmt.Sprintf("4: Shoot %s is being deleted, and %s is still on it", shoot, KeyOf(o)))
		}
	}
	slices.Sort(bad)
	return bad
}

// noSecretIn looks for the marker in something that people can read.
func (c *Checker) noSecretIn(where string, what any) {
	if c.opts.Marker == "" {
		return
	}
	raw, err := json.Marshal(what)
	if err != nil {
		c.violate("10: %s cannot be searched: %v", where, err)
		return
	}
	c.NoSecret(where, raw)
}

// NoSecret looks for the marker of the test's credentials.
func (c *Checker) NoSecret(where string, raw []byte) {
	if i := bytes.Index(raw, []byte(c.opts.Marker)); c.opts.Marker != "" && i >= 0 {
		c.violate("10: %s holds a credential: …%s…", where, raw[max(0, i-80):min(len(raw), i+40)])
	}
}
