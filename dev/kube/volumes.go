package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
)

// Annotations of the protocol between the volume controller and provisioners.
const (
	annotationProvisioner   = "volume.kubernetes.io/storage-provisioner"
	annotationSelectedNode  = "volume.kubernetes.io/selected-node"
	annotationProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

// VolumeRequest is a disk that a PersistentVolumeClaim asks for.
type VolumeRequest struct {
	// Name is unique and the same for each attempt: "pvc-<uid of the claim>".
	Name string
	// Claim is "<namespace>/<name>" of the claim.
	Claim string
	// Driver is the StorageClass' provisioner, for example "ebs.csi.aws.com".
	Driver string
	// Bytes is the requested size.
	Bytes int64
	// Zone is where the pod that uses the volume will run; empty when the class
	// binds immediately.
	Zone string
	// Parameters are those of the StorageClass (type, encrypted, kmsKeyId, …).
	Parameters map[string]string
}

// VolumeBackend makes and removes the disks behind PersistentVolumes.
type VolumeBackend interface {
	// Create returns the handle of the disk with the request's name, making it
	// when it does not exist yet.
	Create(ctx context.Context, req VolumeRequest) (handle string, err error)
	// Delete removes a disk. One that is gone already is no error.
	Delete(ctx context.Context, driver, handle string) error
}

// apiOnlyVolumes is the backend of clusters without a cloud.
type apiOnlyVolumes struct{}

func (apiOnlyVolumes) Create(_ context.Context, req VolumeRequest) (string, error) {
	sum := sha256.Sum256([]byte(req.Name))
	return "vol-" + hex.EncodeToString(sum[:])[:17], nil // the form of an EBS volume id
}

func (apiOnlyVolumes) Delete(context.Context, string, string) error { return nil }

// addVolumeControllers adds upstream's binding, reclaiming and protection of
// volumes, and our provisioner.
func addVolumeControllers(ctx context.Context, l *loops, backend VolumeBackend) error {
	core, storage := l.shared.Core().V1(), l.shared.Storage().V1()
	binder, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient:                l.client,
		SyncPeriod:                15 * time.Second,
		VolumeInformer:            core.PersistentVolumes(),
		ClaimInformer:             core.PersistentVolumeClaims(),
		ClassInformer:             storage.StorageClasses(),
		PodInformer:               core.Pods(),
		NodeInformer:              core.Nodes(),
		EnableDynamicProvisioning: true,
	})
	if err != nil {
		return err
	}
	claims, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx),
		core.PersistentVolumeClaims(), core.Pods(), l.client)
	if err != nil {
		return err
	}
	volumes := pvprotection.NewPVProtectionController(klog.FromContext(ctx), core.PersistentVolumes(), l.client)
	provision := newProvisioner(l.client, l.shared, backend)
	l.add(
		func(ctx context.Context) { binder.Run(ctx) },
		func(ctx context.Context) { claims.Run(ctx, workers) },
		func(ctx context.Context) { volumes.Run(ctx, workers) },
		provision.run,
	)
	return nil
}

// provisioner does for every driver what a CSI driver's external-provisioner
// does: it makes a volume for each claim that upstream's controller hands over,
// and removes released volumes whose reclaim policy is Delete. Volumes with
// Retain stay, Released.
type provisioner struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	nodes   corelisters.NodeLister
	classes storagelisters.StorageClassLister
	synced  []cache.InformerSynced
	queue   workqueue.TypedRateLimitingInterface[volumeKey]
	backend VolumeBackend
}

// volumeKey names a claim, or a volume when the namespace is empty.
type volumeKey struct{ namespace, name string }

func newProvisioner(client kubernetes.Interface, shared informers.SharedInformerFactory, backend VolumeBackend) *provisioner {
	if backend == nil {
		backend = apiOnlyVolumes{}
	}
	core := shared.Core().V1()
	p := &provisioner{
		client:  client,
		claims:  core.PersistentVolumeClaims().Lister(),
		volumes: core.PersistentVolumes().Lister(),
		nodes:   core.Nodes().Lister(),
		classes: shared.Storage().V1().StorageClasses().Lister(),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[volumeKey]()),
		backend: backend,
	}
	enqueue := func(object any) {
		if o, ok := object.(metav1.Object); ok {
			p.queue.Add(volumeKey{o.GetNamespace(), o.GetName()})
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }}
	for _, informer := range []cache.SharedIndexInformer{
		core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer(),
	} {
		_, _ = informer.AddEventHandler(handler) // fails only for a stopped informer
		p.synced = append(p.synced, informer.HasSynced)
	}
	p.synced = append(p.synced, core.Nodes().Informer().HasSynced, shared.Storage().V1().StorageClasses().Informer().HasSynced)
	return p
}

func (p *provisioner) run(ctx context.Context) {
	defer context.AfterFunc(ctx, p.queue.ShutDown)()
	if !cache.WaitForCacheSync(ctx.Done(), p.synced...) {
		return
	}
	for {
		key, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		if err := p.sync(ctx, key); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Volume cannot be provisioned or removed yet", "namespace", key.namespace, "name", key.name)
			p.queue.AddRateLimited(key)
		} else {
			p.queue.Forget(key)
		}
		p.queue.Done(key)
	}
}

func (p *provisioner) sync(ctx context.Context, key volumeKey) error {
	if key.namespace == "" {
		volume, err := p.volumes.Get(key.name)
		if err != nil {
			return ignoreNotFound(err)
		}
		return p.reclaim(ctx, volume)
	}
	claim, err := p.claims.PersistentVolumeClaims(key.namespace).Get(key.name)
	if err != nil {
		return ignoreNotFound(err)
	}
	return p.provision(ctx, claim)
}

// provision makes the volume of a claim that is ours to serve.
func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil ||
		claim.Spec.StorageClassName == nil || claim.Annotations[annotationProvisioner] == "" {
		return nil
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return err
	}
	zone, ready, err := p.zone(claim, class)
	if err != nil || !ready {
		return err
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	req := VolumeRequest{
		Name:       "pvc-" + string(claim.UID),
		Claim:      claim.Namespace + "/" + claim.Name,
		Driver:     class.Provisioner,
		Bytes:      size.Value(),
		Zone:       zone,
		Parameters: class.Parameters,
	}
	handle, err := p.backend.Create(ctx, req)
	if err != nil {
		return fmt.Errorf("make the disk of claim %s: %w", req.Claim, err)
	}
	volume, err := newVolume(req, handle, claim, class)
	if err != nil {
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// zone tells where the volume has to be; ready is false until the scheduler has
// chosen a node for a claim that waits for its first consumer.
func (p *provisioner) zone(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (zone string, ready bool, err error) {
	name := claim.Annotations[annotationSelectedNode]
	if name == "" {
		waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
		return "", !waits, nil
	}
	node, err := p.nodes.Get(name)
	if err != nil {
		return "", false, err
	}
	return node.Labels[corev1.LabelTopologyZone], true, nil
}

func newVolume(req VolumeRequest, handle string, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (*corev1.PersistentVolume, error) {
	ref, err := reference.GetReference(legacyscheme.Scheme, claim)
	if err != nil {
		return nil, err
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        req.Name,
			Annotations: map[string]string{annotationProvisionedBy: class.Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			ClaimRef:                      ref,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: handle},
			},
		},
	}
	if class.ReclaimPolicy != nil {
		volume.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
	}
	if req.Zone != "" {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{req.Zone},
			}}}},
		}}
	}
	return volume, nil
}

// reclaim removes a released volume of ours, disk first.
func (p *provisioner) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[annotationProvisionedBy] == "" || volume.Spec.CSI == nil ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	if !slices.Contains([]corev1.PersistentVolumePhase{corev1.VolumeReleased, corev1.VolumeFailed}, volume.Status.Phase) {
		return nil
	}
	if err := p.backend.Delete(ctx, volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle); err != nil {
		return fmt.Errorf("remove the disk %s: %w", volume.Spec.CSI.VolumeHandle, err)
	}
	return ignoreNotFound(p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
