package gardenlet

import (
	"context"
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidbcloud/infra-orchestrator/dev/kube"
)

const (
	// issuerHost is the host of Gardener's discovery server in this garden.
	issuerHost = "discovery.devstack.test"

	keyCACert = "ca.crt"
	keyCAKey  = "ca.key"
)

// adminGroups are the groups that adminkubeconfig puts into certificates.
var adminGroups = []string{"gardener.cloud:system:admins", "gardener.cloud:project:admins"}

// viewerGroups are those of viewerkubeconfig.
var viewerGroups = []string{"gardener.cloud:system:viewers", "gardener.cloud:project:viewers"}

// issuerURL is the issuer of a shoot's service account tokens, in the form of
// Gardener's managed issuer. It does not depend on ports, so that what trusts
// it (IAM OIDC providers) stays right over restarts.
func issuerURL(shoot *gardencorev1beta1.Shoot) string {
	project := strings.TrimPrefix(shoot.Namespace, "garden-")
	return fmt.Sprintf("https://%s/projects/%s/shoots/%s/issuer", issuerHost, project, shoot.UID)
}

// advertise lists where the cluster is found.
func advertise(shoot *gardencorev1beta1.Shoot, apiServer string) []gardencorev1beta1.ShootAdvertisedAddress {
	return []gardencorev1beta1.ShootAdvertisedAddress{
		{Name: "external", URL: apiServer},
		{Name: "service-account-issuer", URL: issuerURL(shoot)},
	}
}

// publishAccess gives the gardener-apiserver what adminkubeconfig signs with:
// InternalSecret <shoot>.ca-client and ConfigMap <shoot>.ca-cluster.
func (r *reconciler) publishAccess(ctx context.Context, shoot *gardencorev1beta1.Shoot, ca *kube.CA) error {
	secret, config := accessObjects(shoot)
	if _, err := controllerutil.CreateOrUpdate(ctx, r.client, secret, func() error {
		secret.Data = map[string][]byte{keyCACert: ca.CertPEM, keyCAKey: ca.KeyPEM}
		return nil
	}); err != nil {
		return err
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, config, func() error {
		config.Data = map[string]string{keyCACert: string(ca.CertPEM)}
		return nil
	})
	return err
}

// dropAccess takes both away again.
func (r *reconciler) dropAccess(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	secret, config := accessObjects(shoot)
	for _, object := range []client.Object{secret, config} {
		if err := r.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func accessObjects(shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.InternalSecret, *corev1.ConfigMap) {
	meta := func(suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: shoot.Namespace,
			Name:      gardenerutils.ComputeShootProjectResourceName(shoot.Name, suffix),
			Labels:    map[string]string{"shoot.gardener.cloud/name": shoot.Name},
		}
	}
	return &gardencorev1beta1.InternalSecret{ObjectMeta: meta(gardenerutils.ShootProjectSecretSuffixCAClient)},
		&corev1.ConfigMap{ObjectMeta: meta(gardenerutils.ShootProjectConfigMapSuffixCACluster)}
}

// grantAdmins binds Gardener's groups to roles inside the shoot.
func grantAdmins(ctx context.Context, config *rest.Config) error {
	shoot, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for role, groups := range map[string][]string{"cluster-admin": adminGroups, "view": viewerGroups} {
		for _, group := range groups {
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: group},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
			}
			_, err := shoot.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	return nil
}
