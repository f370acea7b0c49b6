// Package v1alpha1 holds the kind Balancer of API group
// balancer.x-k8s.io/v1alpha1, compatible with the one of
// kubernetes/autoscaler: manifests, and autoscalers that target its scale
// subresource, work unchanged. What is added to it is optional.
//
// +kubebuilder:object:generate=true
// +groupName=balancer.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group.
const GroupName = "balancer.x-k8s.io"

// KindBalancer is the name of the kind.
const KindBalancer = "Balancer"

var (
	// GroupVersion is the group and version of this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add this package to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the kind to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Balancer{}, &BalancerList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
