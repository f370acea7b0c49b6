package kube

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// disks is a VolumeBackend that remembers.
type disks struct {
	mu   sync.Mutex
	byID map[string]VolumeRequest
}

func (d *disks) Create(_ context.Context, req VolumeRequest) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byID["disk-"+req.Name] = req
	return "disk-" + req.Name, nil
}

func (d *disks) Delete(_ context.Context, _, handle string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byID, handle)
	return nil
}

func (d *disks) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.byID)
}

func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real API server")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	logs, err := os.Create(filepath.Join(dir, "kube.log"))
	check(t, err)
	LogTo(logs)
	etcd, err := StartEtcd(filepath.Join(dir, "etcd"), "")
	check(t, err)
	defer etcd.Close()

	backend := &disks{byID: map[string]VolumeRequest{}}
	opts := Options{Name: "c1", Dir: filepath.Join(dir, "c1"), Etcd: etcd, Workloads: true, Volumes: backend}
	cluster, err := Start(ctx, opts)
	check(t, err)
	client, err := kubernetes.NewForConfig(cluster.Config())
	check(t, err)

	volumesFollowTheirPolicy(ctx, t, client, backend)
	clientCertificateIsAUser(ctx, t, cluster)
	outageIsOne(ctx, t, cluster, client)

	url := cluster.URL()
	check(t, cluster.Stop())
	cluster, err = Start(ctx, opts)
	check(t, err)
	if cluster.URL() != url {
		t.Errorf("after a restart the API server is at %s, before at %s", cluster.URL(), url)
	}
	if _, err := client.StorageV1().StorageClasses().Get(ctx, "retain", metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	check(t, cluster.Stop())

	check(t, etcd.DeletePrefix(ctx, cluster.EtcdPrefix()))
	cluster, err = Start(ctx, opts)
	check(t, err)
	defer func() { check(t, cluster.Stop()) }()
	if _, err := client.StorageV1().StorageClasses().Get(ctx, "retain", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the removal of the prefix: %v, want not found", err)
	}
}

// volumesFollowTheirPolicy: claims get bound volumes; those with the policy
// Delete go with the claim, disk included, those with Retain stay, Released.
func volumesFollowTheirPolicy(ctx context.Context, t *testing.T, client kubernetes.Interface, backend *disks) {
	t.Helper()
	names := map[string]string{}
	for class, policy := range map[string]corev1.PersistentVolumeReclaimPolicy{
		"delete": corev1.PersistentVolumeReclaimDelete, "retain": corev1.PersistentVolumeReclaimRetain,
	} {
		_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "ebs.csi.aws.com", ReclaimPolicy: &policy,
		}, metav1.CreateOptions{})
		check(t, err)
		claims := client.CoreV1().PersistentVolumeClaims("default")
		_, err = claims.Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: class},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
			},
		}, metav1.CreateOptions{})
		check(t, err)
		eventually(ctx, t, "claim "+class, func() error {
			claim, err := claims.Get(ctx, class, metav1.GetOptions{})
			if err == nil && claim.Status.Phase != corev1.ClaimBound {
				err = fmt.Errorf("phase %s", claim.Status.Phase)
			}
			names[class] = claim.Spec.VolumeName
			return err
		})
		check(t, claims.Delete(ctx, class, metav1.DeleteOptions{}))
	}
	volumes := client.CoreV1().PersistentVolumes()
	eventually(ctx, t, "removal of the volume with Delete", func() error {
		_, err := volumes.Get(ctx, names["delete"], metav1.GetOptions{})
		if apierrors.IsNotFound(err) && backend.count() == 1 {
			return nil
		}
		return fmt.Errorf("volume: %v, and %d disks", err, backend.count())
	})
	eventually(ctx, t, "release of the volume with Retain", func() error {
		volume, err := volumes.Get(ctx, names["retain"], metav1.GetOptions{})
		if err == nil && volume.Status.Phase != corev1.VolumeReleased {
			err = fmt.Errorf("phase %s", volume.Status.Phase)
		}
		return err
	})
	// As whoever deletes a database for good does.
	patch := []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	_, err := volumes.Patch(ctx, names["retain"], "application/merge-patch+json", patch, metav1.PatchOptions{})
	check(t, err)
	eventually(ctx, t, "removal of the volume that was switched to Delete", func() error {
		if backend.count() != 0 {
			return errors.New("its disk is left")
		}
		return nil
	})
}

// clientCertificateIsAUser: what the CA signs, the API server takes as a user
// without rights of its own.
func clientCertificateIsAUser(ctx context.Context, t *testing.T, cluster *Cluster) {
	t.Helper()
	certPEM, keyPEM, err := cluster.CA().Issue(CertRequest{CommonName: "jane", Organizations: []string{"readers"}, Validity: time.Hour})
	check(t, err)
	config := rest.AnonymousClientConfig(cluster.Config())
	config.CertData, config.KeyData = certPEM, keyPEM
	jane, err := kubernetes.NewForConfig(config)
	check(t, err)
	if _, err := jane.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("jane lists Secrets: %v, want forbidden", err)
	}
}

func outageIsOne(ctx context.Context, t *testing.T, cluster *Cluster, client kubernetes.Interface) {
	t.Helper()
	url := cluster.URL()
	check(t, cluster.StopAPIServer())
	if _, err := client.Discovery().ServerVersion(); err == nil {
		t.Error("the API server answers during its outage")
	}
	check(t, cluster.StartAPIServer(ctx))
	if cluster.URL() != url {
		t.Errorf("the API server came back at %s, was at %s", cluster.URL(), url)
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Errorf("after the outage: %v", err)
	}
	// The controllers are still at work.
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "after"}}, metav1.CreateOptions{})
	check(t, err)
	eventually(ctx, t, "default service account after the outage", func() error {
		_, err := client.CoreV1().ServiceAccounts("after").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func TestIssue(t *testing.T) {
	ca, err := ensurePKI(t.TempDir(), "c1")
	check(t, err)
	for _, test := range []struct {
		name  string
		req   CertRequest
		usage x509.ExtKeyUsage
	}{
		{"client", CertRequest{CommonName: "jane", Organizations: []string{"readers"}}, x509.ExtKeyUsageClientAuth},
		{"server", CertRequest{CommonName: "api", DNSNames: []string{"api.garden.svc"}}, x509.ExtKeyUsageServerAuth},
	} {
		t.Run(test.name, func(t *testing.T) {
			certPEM, _, err := ca.Issue(test.req)
			check(t, err)
			block, _ := pem.Decode(certPEM)
			leaf, err := x509.ParseCertificate(block.Bytes)
			check(t, err)
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(ca.CertPEM)
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{test.usage}}); err != nil {
				t.Error(err)
			}
			other := x509.ExtKeyUsageServerAuth + x509.ExtKeyUsageClientAuth - test.usage
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{other}}); err == nil {
				t.Error("it serves the other purpose, too")
			}
		})
	}
}

func TestEnsurePKIKeepsItsAuthority(t *testing.T) {
	dir := t.TempDir()
	first, err := ensurePKI(dir, "c1")
	check(t, err)
	second, err := ensurePKI(dir, "c1")
	check(t, err)
	if string(first.CertPEM) != string(second.CertPEM) {
		t.Error("a second start has another CA")
	}
	// A start that was cut off before the last file begins anew, whole.
	check(t, os.Remove(filepath.Join(dir, fileServiceAccount)))
	third, err := ensurePKI(dir, "c1")
	check(t, err)
	if string(first.CertPEM) == string(third.CertPEM) {
		t.Error("half a set of certificates was kept")
	}
}

func TestDeletePrefixRefusesAll(t *testing.T) {
	for _, prefix := range []string{"", "/", "//"} {
		if err := (&Etcd{}).DeletePrefix(t.Context(), prefix); err == nil {
			t.Errorf("prefix %q was accepted", prefix)
		}
	}
}

func eventually(ctx context.Context, t *testing.T, what string, fn func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := fn()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
