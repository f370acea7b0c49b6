package shootrules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	// volumeSize is stricter than a quantity: gardener-apiserver takes GiB only.
	volumeSize    = regexp.MustCompile(`^[0-9]+Gi$`)
	architectures = []string{"amd64", "arm64"}
	effects       = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
)

// each runs a check for every worker pool.
func each(check func(w *gardencorev1beta1.Worker, path string, found func(string, any))) func(*subject, func(string, any)) {
	return func(s *subject, found func(string, any)) {
		for i := range s.shoot.Spec.Provider.Workers {
			check(&s.shoot.Spec.Provider.Workers[i], at(i), found)
		}
	}
}

// workers are the rules for worker pools, whatever the cloud.
var workers = slices.Concat([]rule{{
	id:     "workers",
	says:   "at least one worker pool is needed",
	wayOut: "add the system pool (Network.spec.systemPool)",
	check: func(s *subject, found func(string, any)) {
		if len(s.shoot.Spec.Provider.Workers) == 0 {
			found(workersPath, nil)
		}
	},
}, {
	id:     "worker-name",
	says:   "must be a DNS label",
	wayOut: "use lower-case letters, digits and hyphens",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if len(validation.IsDNS1123Label(w.Name)) > 0 {
			found(path+".name", w.Name)
		}
	}),
}, {
	id:     "worker-name-length",
	says:   "must have at most 15 characters",
	wayOut: "shorten the name",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if len(w.Name) > longestWorker {
			found(path+".name", w.Name)
		}
	}),
}, {
	id:     "worker-name-unique",
	says:   "must differ from the names of the other pools",
	wayOut: "rename one of the two",
	check: func(s *subject, found func(string, any)) {
		seen := map[string]bool{}
		for i, w := range s.shoot.Spec.Provider.Workers {
			if seen[w.Name] {
				found(at(i)+".name", w.Name)
			}
			seen[w.Name] = true
		}
	},
}, {
	id:     "worker-minimum",
	says:   "must not be negative",
	wayOut: "set it to 0 or more",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if w.Minimum < 0 {
			found(path+".minimum", w.Minimum)
		}
	}),
}, {
	id:     "worker-maximum",
	says:   "must not be below minimum",
	wayOut: "raise maximum or lower minimum",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if w.Maximum < w.Minimum {
			found(path+".maximum", w.Maximum)
		}
	}),
}, {
	id:     "worker-rollout",
	says:   "maxSurge and maxUnavailable must not both be 0",
	wayOut: "set maxSurge to 1",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if isZero(w.MaxSurge) && isZero(w.MaxUnavailable) {
			found(path+".maxUnavailable", w.MaxUnavailable)
		}
	}),
}, {
	id:     "worker-rollout-form",
	says:   "must be a number of 0 or more, or a percentage such as 5%; maxUnavailable at most 100%",
	wayOut: "correct it",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if v := w.MaxSurge; v != nil && !isCount(v, -1) {
			found(path+".maxSurge", v)
		}
		if v := w.MaxUnavailable; v != nil && !isCount(v, 100) {
			found(path+".maxUnavailable", v)
		}
	}),
}, {
	id:     "worker-machine-type",
	says:   "is required",
	wayOut: "choose a machine class that the ProviderType has",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if w.Machine.Type == "" {
			found(path+".machine.type", nil)
		}
	}),
}, {
	id:     "worker-architecture",
	says:   "must be amd64 or arm64",
	wayOut: "correct it, or leave it to the CloudProfile",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if a := w.Machine.Architecture; a != nil && !slices.Contains(architectures, *a) {
			found(path+".machine.architecture", *a)
		}
	}),
}, {
	id:     "worker-image",
	says:   "must have a name when it is given",
	wayOut: "name the image, or leave it to the CloudProfile",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if i := w.Machine.Image; i != nil && i.Name == "" {
			found(path+".machine.image", i)
		}
	}),
}}, volumes, scheduling)

var volumes = []rule{{
	id:     "volume-size",
	says:   "must be whole GiB, such as 50Gi",
	wayOut: "write the size in Gi",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if w.Volume != nil && !volumeSize.MatchString(w.Volume.VolumeSize) {
			found(path+".volume.size", w.Volume.VolumeSize)
		}
	}),
}, {
	id:     "data-volumes-need-volume",
	says:   "data volumes need a volume of the node itself",
	wayOut: "set volume, or remove dataVolumes",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		if len(w.DataVolumes) > 0 && w.Volume == nil {
			found(path+".volume", nil)
		}
	}),
}, {
	id:     "data-volume-name",
	says:   "must be a DNS label that no other data volume of the pool has",
	wayOut: "rename it",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		seen := map[string]bool{}
		for i, v := range w.DataVolumes {
			if seen[v.Name] || len(validation.IsDNS1123Label(v.Name)) > 0 {
				found(item(path+".dataVolumes", i)+".name", v.Name)
			}
			seen[v.Name] = true
		}
	}),
}, {
	id:     "data-volume-size",
	says:   "must be whole GiB, such as 50Gi",
	wayOut: "write the size in Gi",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		for i, v := range w.DataVolumes {
			if !volumeSize.MatchString(v.VolumeSize) {
				found(item(path+".dataVolumes", i)+".size", v.VolumeSize)
			}
		}
	}),
}, {
	id:     "kubelet-data-volume",
	says:   "must name one of the pool's data volumes",
	wayOut: "add the data volume, or remove the name",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		name := w.KubeletDataVolumeName
		if name != nil && !slices.ContainsFunc(w.DataVolumes, func(v gardencorev1beta1.DataVolume) bool { return v.Name == *name }) {
			found(path+".kubeletDataVolumeName", *name)
		}
	}),
}}

var scheduling = []rule{{
	id:     "worker-labels",
	says:   "must be valid labels of nodes",
	wayOut: "correct key or value",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		for _, k := range keys(w.Labels) {
			if len(validation.IsQualifiedName(k)) > 0 || len(validation.IsValidLabelValue(w.Labels[k])) > 0 {
				found(path+".labels["+k+"]", w.Labels[k])
			}
		}
	}),
}, {
	id:     "worker-taints",
	says:   "must have a valid key and value, and one of the effects NoSchedule, PreferNoSchedule, NoExecute",
	wayOut: "correct the taint",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		for i, t := range w.Taints {
			if len(validation.IsQualifiedName(t.Key)) > 0 || len(validation.IsValidLabelValue(t.Value)) > 0 || !slices.Contains(effects, t.Effect) {
				found(item(path+".taints", i), t)
			}
		}
	}),
}, {
	id:     "worker-taints-unique",
	says:   "must differ from the pool's other taints in key or effect",
	wayOut: "remove one of the two",
	check: each(func(w *gardencorev1beta1.Worker, path string, found func(string, any)) {
		seen := map[string]bool{}
		for i, t := range w.Taints {
			key := t.Key + "/" + string(t.Effect)
			if seen[key] {
				found(item(path+".taints", i), t)
			}
			seen[key] = true
		}
	}),
}, {
	id:     "system-components",
	says:   "at least one pool of more than 0 nodes must allow system components",
	wayOut: "set systemComponents.allow of the system pool",
	check: func(s *subject, found func(string, any)) {
		pools := s.shoot.Spec.Provider.Workers
		if len(pools) > 0 && !slices.ContainsFunc(pools, systemPool) {
			found(workersPath, nil)
		}
	},
}, {
	id:     "system-components-zones",
	says:   "a pool for system components must have room for a node in each of its zones, unless another pool of the same zones has",
	wayOut: "raise maximum to the number of zones (Network.spec.systemPool.maximum)",
	check: func(s *subject, found func(string, any)) {
		enough, first := map[string]bool{}, map[string]int{}
		for i, w := range s.shoot.Spec.Provider.Workers {
			if !systemPool(w) {
				continue
			}
			zones := zoneSet(w.Zones)
			enough[zones] = enough[zones] || int(w.Maximum) >= len(w.Zones)
			if _, ok := first[zones]; !ok {
				first[zones] = i
			}
		}
		for _, zones := range keys(first) {
			if !enough[zones] {
				found(at(first[zones])+".maximum", s.shoot.Spec.Provider.Workers[first[zones]].Maximum)
			}
		}
	},
}}

// systemPool reports whether system components can run in the pool; they can
// unless it says otherwise.
func systemPool(w gardencorev1beta1.Worker) bool {
	return w.Maximum > 0 && (w.SystemComponents == nil || w.SystemComponents.Allow)
}

func zoneSet(zones []string) string {
	zones = slices.Clone(zones)
	slices.Sort(zones)
	return strings.Join(slices.Compact(zones), ",")
}

func isZero(v *intstr.IntOrString) bool {
	return v == nil || v.String() == "0" || v.String() == "0%"
}

// isCount reports whether v is a number or a percentage; most is the largest
// percentage, -1 for any.
func isCount(v *intstr.IntOrString, most int) bool {
	if v.Type == intstr.Int {
		return v.IntVal >= 0
	}
	if len(validation.IsValidPercent(v.StrVal)) > 0 {
		return false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	return err == nil && (most < 0 || n <= most)
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
